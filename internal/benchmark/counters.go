package benchmark

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"

	"github.com/howdah/howdah/internal/ganesha/counters"
)

// errNoMetrics is the error of an answer without any sample.
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
		name, labels, value, ok := counters.ParseSample(scanner.Text())
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
