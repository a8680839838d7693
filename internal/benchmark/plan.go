package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
)

// DefaultSamplesPerAccelerator gives six steps for each accelerator: enough to see that everything works, far too few
// for a figure.
const DefaultSamplesPerAccelerator = 42

// foldersPerServer is the number of folders of a dataset for each data server, unless the share already has more. Two spread the load well
// and need few mounts.
const foldersPerServer = 2

// Plan is everything that the client pods of a run need to know. It is made once for a job and does not change, so that the clients read
// the dataset that they wrote.
type Plan struct {
	// Job is the name of the MLPerfStorageJob.
	Job string `json:"job"`
	// Clients is the number of client pods.
	Clients int `json:"clients"`
	// AcceleratorType is what is emulated.
	AcceleratorType v1alpha1.AcceleratorType `json:"acceleratorType"`
	// Accelerators is their number, over all clients.
	Accelerators int `json:"accelerators"`
	// ComputeMillis is how long each accelerator computes in a step, in milliseconds.
	ComputeMillis int64 `json:"computeMillis"`
	// Samples is the number of files.
	Samples int `json:"samples"`
	// SampleSize is the mean size of a sample in bytes.
	SampleSize int64 `json:"sampleSize"`
	// Folders are the directories of the files, below the share's root.
	Folders []string `json:"folders"`
	// Epochs is how often the dataset is read.
	Epochs int `json:"epochs"`
	// ReadThreads is the number of readers of each accelerator.
	ReadThreads int `json:"readThreads"`
	// Nconnect is the number of TCP connections to each server that the mount asks for.
	Nconnect int `json:"nconnect"`
	// Servers are the data servers, whose counters are read.
	Servers []Server `json:"servers,omitempty"`
}

// Server is a data server as a run sees it.
type Server struct {
	// Name is the name of the DataServer.
	Name string `json:"name"`
	// Addresses are where its counters may be, the best first.
	Addresses []string `json:"addresses"`
	// Exports are the Export_Ids of the share.
	Exports []int32 `json:"exports,omitempty"`
}

// NewPlan is the plan of a job. The job has the schema's defaults; the plan fills in the rest.
func NewPlan(name string, spec v1alpha1.MLPerfStorageJobSpec, folders []string, servers []Server) (Plan, error) {
	p := Plan{
		Job:             name,
		Clients:         int(spec.Clients),
		AcceleratorType: spec.Accelerator.Type,
		Accelerators:    or(spec.Accelerator.Count, 1),
		ComputeMillis:   ComputeTime(spec.Accelerator.Type).Milliseconds(),
		SampleSize:      NominalSampleSize,
		Folders:         folders,
		Epochs:          int(spec.Epochs),
		ReadThreads:     int(spec.ReadThreads),
		Nconnect:        int(spec.Mount.Nconnect),
		Servers:         servers,
	}
	p.Samples = DefaultSamplesPerAccelerator * p.Accelerators
	if d := spec.Dataset; d != nil {
		p.Samples = or(d.Samples, p.Samples)
		if d.SampleSize != nil {
			p.SampleSize = d.SampleSize.Value()
		}
	}
	return p, p.Check()
}

// or is the value, or a default where it is not set.
func or(value int32, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return int(value)
}

// ComputeTime is how long an accelerator computes in a step of unet3d
// (train.computation_time of configs/dlio/workload/unet3d_{h100,a100}.yaml); 0 for an unknown one.
func ComputeTime(accelerator v1alpha1.AcceleratorType) time.Duration {
	switch accelerator {
	case v1alpha1.AcceleratorH100:
		return 323 * time.Millisecond
	case v1alpha1.AcceleratorA100:
		return 636 * time.Millisecond
	default:
		return 0
	}
}

// ParsePlan reads what Text wrote, and checks it.
func ParsePlan(text []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return Plan{}, fmt.Errorf("the plan is not JSON of a plan: %w", err)
	}
	return p, p.Check()
}

// Text is the plan as JSON.
func (p Plan) Text() (string, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return string(text), err
}

// Check fails if a run of the plan is impossible.
func (p Plan) Check() error {
	switch {
	case p.Clients < 1 || p.Accelerators < 1 || p.Accelerators%p.Clients != 0:
		return fmt.Errorf("accelerator.count (%d) must be a multiple of clients (%d)", p.Accelerators, p.Clients)
	case p.Samples < BatchSize*p.Accelerators:
		return fmt.Errorf("dataset.samples is %d; a step reads %d for each accelerator, so %d accelerators need at least %d",
			p.Samples, BatchSize, p.Accelerators, BatchSize*p.Accelerators)
	case p.SampleSize < 1 || p.Epochs < 1 || p.ReadThreads < 1 || p.ComputeMillis < 0:
		return errors.New("sampleSize, epochs and readThreads must be positive")
	case len(p.Folders) == 0:
		return errors.New("the dataset has no folders: the share has no data servers")
	}
	for _, folder := range p.Folders {
		if folder == "" || slices.ContainsFunc(strings.Split(folder, "/"), func(e string) bool { return e == "" || e == "." || e == ".." }) {
			return fmt.Errorf("folder %q must be a relative path without empty, '.' or '..' elements", folder)
		}
	}
	return nil
}

// Dataset is the dataset of the plan.
func (p Plan) Dataset() Dataset {
	return Dataset{Samples: p.Samples, SampleSize: p.SampleSize, Folders: p.Folders}
}

// Compute is how long each accelerator computes in a step.
func (p Plan) Compute() time.Duration { return time.Duration(p.ComputeMillis) * time.Millisecond }

// AcceleratorsPerClient is the number of accelerators of each client.
func (p Plan) AcceleratorsPerClient() int { return p.Accelerators / p.Clients }

// Steps is the number of steps of an epoch.
func (p Plan) Steps() int { return Steps(p.Samples, p.Accelerators) }

// folderPrefixes is what a folder's name has before its number, for each depth
// of a share, so that each folder is a directory that is spread over the data servers.
var folderPrefixes = map[int]string{1: "train.", 2: "train/", 3: "unet3d/train/", 4: "mlperf/unet3d/train/"}

// Folders are the folders of a dataset on a share of the given layout and depth
// with dataServers data servers: all of the existing directories that have such a name, and as
// many new ones as are missing. Plain mkdir makes them; the share spreads them.
func Folders(layout v1alpha1.ShareLayout, depth int, existing []string, dataServers int) []string {
	prefix := folderPrefixes[min(max(depth, 1), len(folderPrefixes))]
	if layout == v1alpha1.LayoutSingle {
		prefix, existing = folderPrefixes[2], nil // plain directories of one data server
	}
	var folders []string
	for _, directory := range existing {
		if number, ok := strings.CutPrefix(directory, prefix); ok && isNumber(number) {
			folders = append(folders, directory)
		}
	}
	wanted := max(foldersPerServer*dataServers, len(folders))
	width := len(strconv.Itoa(wanted))
	for i := 0; len(folders) < wanted; i++ {
		padded, plain := fmt.Sprintf("%s%0*d", prefix, width, i), prefix+strconv.Itoa(i)
		if !slices.Contains(folders, padded) && !slices.Contains(folders, plain) {
			folders = append(folders, padded)
		}
	}
	slices.Sort(folders)
	return folders
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
