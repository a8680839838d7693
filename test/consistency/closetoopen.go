package consistency

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// CloseToOpen checks the operations without locks on files: a Read opens a file, reads and closes it, a Write opens it, writes and
// closes it. What a Read shows was written by a Write that had begun before the Read ended, and not before another one that was
// closed before the Read opened the file (RFC 8881 section 10.3.1). Values must be different.
func CloseToOpen(h History) Verdict {
	files := map[string]History{}
	for _, o := range h {
		if !o.Locked && (o.Kind == Read || o.Kind == Write) {
			files[o.Path] = append(files[o.Path], o)
		}
	}
	var v Verdict
	for _, file := range slices.Sorted(maps.Keys(files)) {
		ops := files[file].sorted()
		for i := range ops {
			if o := &ops[i]; o.Kind == Read && o.Error == "" && !o.Open() {
				if wrong := judgeRead(o, ops); wrong != "" {
					v.Violations = append(v.Violations, wrong)
				}
			}
		}
	}
	return v
}

// judgeRead is "" if a Read shows what it may.
func judgeRead(read *Operation, ops History) string {
	// The file's first value has no writer, and is before everything.
	written := Operation{Request: Request{Kind: Write, Path: read.Path}, Call: -1, Return: -1}
	if read.Got != "" {
		at := slices.IndexFunc(ops, func(o Operation) bool { return o.Kind == Write && o.Value == read.Got })
		if at < 0 {
			return "it read what was not written:\n" + read.String() + "\n"
		}
		written = ops[at]
	}
	if written.Call > read.Return {
		return fmt.Sprintf("it read what was written later:\n%s\n%s\n", read, &written)
	}
	// A write that failed may have been made, and later, too.
	end := written.Return
	if written.Error != "" {
		end = Never
	}
	for i := range ops {
		o := &ops[i]
		if o.Kind == Write && o.Error == "" && !o.Open() && o.Call > end && o.Return < read.Call {
			was := "what was there at first"
			if written.Call >= 0 {
				was = written.String()
			}
			return fmt.Sprintf("it was opened %s after another value was closed, and read an older one:\n%s\n%s\n%s\n",
				(read.Call - o.Return).Round(time.Microsecond), was, o, read)
		}
	}
	return ""
}
