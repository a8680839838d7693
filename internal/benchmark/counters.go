package benchmark

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// errNoReadCounter: a data server's metrics have no counter of READ.
var errNoReadCounter = errors.New("the metrics have no counter of bytes of READ: ganesha needs Enable_Metrics and Enable_Dynamic_Metrics")

// ReadBytes finds in the metrics of a ganesha (text format of Prometheus) how many
// bytes of READ payload it has served of the given exports. ganesha counts them as *received*: its
// FSAL received them. Where no sample carries one of the exports the sum over all is taken,
// and where there is no counter for each export that of the whole server.
func ReadBytes(metrics []byte, exports []int32) (int64, error) {
	wanted := map[string]bool{}
	for _, e := range exports {
		id := strconv.Itoa(int(e))
		wanted[id], wanted["export_id="+id] = true, true
	}
	var ofExports, ofAll, ofServer counter
	scanner := bufio.NewScanner(bytes.NewReader(metrics))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		name, labels, value, ok := parseSample(scanner.Text())
		if !ok || !strings.EqualFold(labels["operation"], "read") {
			continue
		}
		// ganesha's source names families with one or two underscores after the first word.
		switch strings.ReplaceAll(name, "__", "_") {
		case "nfs_bytes_received_by_export_total":
			ofAll.add(value)
			if wanted[labels["export"]] {
				ofExports.add(value)
			}
		case "nfs_bytes_received_total":
			ofServer.add(value)
		}
	}
	if err := scanner.Err(); err != nil {
		return 0, err
	}
	for _, c := range []counter{ofExports, ofAll, ofServer} {
		if c.found {
			return int64(c.sum), nil
		}
	}
	return 0, errNoReadCounter
}

type counter struct {
	sum   float64
	found bool
}

func (c *counter) add(v float64) { c.sum, c.found = c.sum+v, true }

// parseSample splits `name{label="value",…} number`. Lines that are no sample give ok false.
func parseSample(line string) (name string, labels map[string]string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", nil, 0, false
	}
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", nil, 0, false
	}
	name, rest := line[:end], line[end:]
	labels = map[string]string{}
	if rest[0] == '{' {
		if rest, ok = parseLabels(rest[1:], labels); !ok {
			return "", nil, 0, false
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", nil, 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil && value >= 0
}

// parseLabels reads up to and with the closing brace, and returns what follows it.
func parseLabels(s string, labels map[string]string) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, ", ")
		if strings.HasPrefix(s, "}") {
			return s[1:], true
		}
		key, after, found := strings.Cut(s, `="`)
		if !found {
			return "", false
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return "", false
		}
		labels[key] = after[:end]
		s = after[end+1:]
	}
}
