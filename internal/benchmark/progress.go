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

// The clients of a run that was interrupted and begun anew may still be writing while the next one's
// come, so that what tells of a run's course has the run's name, which is the UID of the Job of its pods ("" without Kubernetes).

// KeyCoordinator is the address (host:port) of the first client, which coordinates.
func KeyCoordinator(run string) string { return keyOfRun("coordinator", run) }

// KeyProgress is how far the run is, for people.
func KeyProgress(run string) string { return keyOfRun("progress", run) }

// KeyFailure is why the run failed.
func KeyFailure(run string) string { return keyOfRun("failure", run) }

func keyOfRun(key, run string) string {
	if run == "" {
		return key
	}
	return key + "-" + run
}

// KeyGenerate is how far a client is with its part of the dataset: JSON of GenerateProgress.
func KeyGenerate(client int) string { return keyGenerate + strconv.Itoa(client) }

// GenerateProgress is how far a client is with its part of the dataset.
type GenerateProgress struct {
	// Files is how many files it is to have, Done how many it has, Bytes how large those are.
	Files int   `json:"files"`
	Done  int   `json:"done"`
	Bytes int64 `json:"bytes"`
}

// Progress is how far a job is in the given state, from what its clients, those of the given run, have
// written; "" if there is nothing to tell.
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

// The most that the API takes, in bytes.
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
