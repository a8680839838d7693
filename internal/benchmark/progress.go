package benchmark

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Keys of the ConfigMap that the clients of a job write.
const (
	// KeyResult is the result: JSON of v1alpha1.BenchmarkResult.
	KeyResult = "result.json"
	// KeyTable is the result for people.
	KeyTable = "result.txt"

	keyGenerate = "generate-"
)

// When a run is interrupted and started again, clients of the first may still write while those of the second start. So the keys of a
// run's progress have the run's name: the UID of the Job of its pods ("" without Kubernetes).

// KeyCoordinator is the address (host:port) of the first client, which coordinates.
func KeyCoordinator(run string) string { return keyOfRun("coordinator", run) }

// KeyProgress is the progress of the run as text.
func KeyProgress(run string) string { return keyOfRun("progress", run) }

// KeyFailure is why the run failed.
func KeyFailure(run string) string { return keyOfRun("failure", run) }

func keyOfRun(key, run string) string {
	if run == "" {
		return key
	}
	return key + "-" + run
}

// KeyGenerate is the progress of a client with its part of the dataset: JSON of GenerateProgress.
func KeyGenerate(client int) string { return keyGenerate + strconv.Itoa(client) }

// GenerateProgress is the progress of a client with its part of the dataset.
type GenerateProgress struct {
	// Files is the number of files to write, Done the number of files written, Bytes their size.
	Files int   `json:"files"`
	Done  int   `json:"done"`
	Bytes int64 `json:"bytes"`
}

// Progress is the progress of a job in the given state, from what the clients of the given run have written; "" if there is none.
func Progress(s State, journal map[string]string, run string) string {
	switch s {
	case StateGeneratingDataset:
		var sum GenerateProgress
		for key, text := range journal {
			var part GenerateProgress
			if !strings.HasPrefix(key, keyGenerate) || json.Unmarshal([]byte(text), &part) != nil {
				continue
			}
			sum.Files, sum.Done, sum.Bytes = sum.Files+part.Files, sum.Done+part.Done, sum.Bytes+part.Bytes
		}
		if sum.Files == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d files, %s", sum.Done, sum.Files, megabytes(sum.Bytes))
	case StateRunning, StateCollecting:
		return cut(journal[KeyProgress(run)], maxProgress)
	default:
		return ""
	}
}

// The API's limit, in bytes.
const (
	maxProgress = 256
	maxMessage  = 1024
)

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
