package mountinfo

import (
	"fmt"
	"strconv"
	"strings"
)

// Mount is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type Mount struct {
	// ID is the mount's, as in fdinfo's mnt_id.
	ID int
	// Device is the file system's "major:minor": what has the same is the same file system, also where st_dev differs
	// (subvolumes of btrfs).
	Device string
	// Root is the directory of the file system that is mounted; "/" is all of it.
	Root string
	// Point is where it is mounted, as seen from the process's root directory.
	Point string
	// Type is the file system's type, with a subtype behind a dot.
	Type string
	// Source is what the file system calls its device.
	Source string
}

// Parse reads the table. A line that it doesn't understand is an error: a volume must not pass because of one that was left out.
func Parse(table string) ([]Mount, error) {
	var mounts []Mount
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		mount, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d of the table of mounts, %q: %w", len(mounts)+1, line, err)
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

// The fields before and behind the optional ones, which end with a hyphen.
const (
	fieldID = iota
	fieldParent
	fieldDevice
	fieldRoot
	fieldPoint
	fieldOptions
	fieldsBefore
)

func parseLine(line string) (Mount, error) {
	// Every blank separates: a source can be empty, and blanks in names are escaped.
	fields := strings.Split(line, " ")
	end := fieldsBefore
	for end < len(fields) && fields[end] != "-" {
		end++
	}
	if len(fields) < end+4 {
		return Mount{}, fmt.Errorf("%d fields are too few", len(fields))
	}
	id, err := strconv.Atoi(fields[fieldID])
	if err != nil {
		return Mount{}, fmt.Errorf("the mount's id: %w", err)
	}
	mount := Mount{ID: id, Device: fields[fieldDevice], Type: fields[end+1]}
	if mount.Device == "" || mount.Type == "" {
		return Mount{}, fmt.Errorf("no device or no type")
	}
	for to, text := range map[*string]string{&mount.Root: fields[fieldRoot], &mount.Point: fields[fieldPoint], &mount.Source: fields[end+2]} {
		if *to, err = unescape(text); err != nil {
			return Mount{}, err
		}
	}
	if mount.Root == "" || mount.Point == "" {
		return Mount{}, fmt.Errorf("no root or no mount point")
	}
	return mount, nil
}

// unescape undoes mangle_path: a blank, a tab, a line's end, a backslash and # are a backslash and three octal digits.
func unescape(text string) (string, error) {
	var plain strings.Builder
	for {
		before, after, escaped := strings.Cut(text, `\`)
		plain.WriteString(before)
		if !escaped {
			return plain.String(), nil
		}
		if len(after) < 3 {
			return "", fmt.Errorf("%q ends within an escape", text)
		}
		code, err := strconv.ParseUint(after[:3], 8, 8)
		if err != nil {
			return "", fmt.Errorf("%q has no octal digits behind a backslash", text)
		}
		plain.WriteByte(byte(code))
		text = after[3:]
	}
}
