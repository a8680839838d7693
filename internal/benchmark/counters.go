package benchmark

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// errNoMetrics: what a data server answered has no sample at all.
var errNoMetrics = errors.New("the answer has no metrics: ganesha needs Enable_Metrics and Enable_Dynamic_Metrics")

// readFamily counts READ payload by export. ganesha counts it as *received*: its FSAL received it.
const readFamily = "nfs_bytes_received_by_export_total"

// ReadBytes finds in the metrics of a ganesha (text format of Prometheus) how many
// bytes of READ payload it has served of the given exports, or of all if none is given.
// ganesha makes a counter with the first READ of an export, so no counter means 0.
func ReadBytes(metrics []byte, exports []int32) (int64, error) {
	wanted := map[string]bool{}
	for _, e := range exports {
		wanted["export_id="+strconv.Itoa(int(e))] = true
	}
	var sum float64
	samples := 0
	scanner := bufio.NewScanner(bytes.NewReader(metrics))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		name, labels, value, ok := parseSample(scanner.Text())
		if !ok {
			continue
		}
		samples++
		if name == readFamily && labels["operation"] == "read" && (len(wanted) == 0 || wanted[labels["export"]]) {
			sum += value
		}
	}
	if err := scanner.Err(); err != nil {
		return 0, err
	}
	if samples == 0 {
		return 0, errNoMetrics
	}
	return int64(sum), nil
}

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
