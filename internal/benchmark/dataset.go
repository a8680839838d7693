package benchmark

import (
	"fmt"
	"math"
	"path"
	"strconv"
)

// The samples of unet3d in MLPerf Storage (record_length and record_length_stdev
// of configs/dlio/workload/unet3d_h100.yaml), in bytes.
const (
	NominalSampleSize  = 146600628
	nominalSampleStdev = 68341808
)

// The seeds of DLIO: of the sizes (NPZGenerator.generate) and of the reading order (args.seed).
const (
	sizeSeed  = 10
	orderSeed = 123
)

// Shape is the shape of a sample's array: (Rows, Columns, 1) of uint8.
type Shape struct{ Rows, Columns int }

// Bytes is the size of the array.
func (s Shape) Bytes() int64 { return int64(s.Rows) * int64(s.Columns) }

// FileSize is the size of the sample's npz file in bytes.
func (s Shape) FileSize() int64 { return s.Bytes() + npzOverhead(s) }

// Dataset is a set of samples, one in a file.
type Dataset struct {
	// Samples is the number of files.
	Samples int
	// SampleSize is the mean size of a sample's array in bytes.
	SampleSize int64
	// Folders are the directories that hold the files, below the share's root.
	Folders []string
}

// Shapes are the shapes of all samples, as DLIO computes them (data_generator.py,
// get_dimension): both sides of the array are normal numbers, so that the size has a relative
// deviation of 33 %, and not of the 47 % that the configuration names. The deviation is scaled with the size.
func (d Dataset) Shapes() []Shape {
	mean := float64(d.SampleSize)
	root := math.Sqrt(mean)
	side := math.Trunc(root)
	deviation := mean * nominalSampleStdev / NominalSampleSize / 2 / root
	random := newNumpyRandom(sizeSeed)
	draw := func() int { return max(int(random.normal(side, deviation)), 1) }
	shapes := make([]Shape, d.Samples)
	for i := range shapes {
		shapes[i].Rows = draw()
		shapes[i].Columns = draw()
	}
	return shapes
}

// File is the path of a sample's file below the share's root. Files go to the folders in turn, as in
// DLIO, so that every folder has equally many.
func (d Dataset) File(sample int) string {
	count := strconv.Itoa(d.Samples)
	name := fmt.Sprintf("img_%0*d_of_%s.npz", len(count), sample, count)
	return path.Join(d.Folders[sample%len(d.Folders)], name)
}

// TotalBytes is the size of all files.
func (d Dataset) TotalBytes() int64 {
	total := int64(0)
	for _, shape := range d.Shapes() {
		total += shape.FileSize()
	}
	return total
}

// Shard is the part of a dataset that one of several clients writes: every client-th file
// of a folder, so that all clients write to all data servers from the start.
func (d Dataset) Shard(client, clients int) []int {
	var samples []int
	for i := range d.Samples {
		if (i/len(d.Folders))%clients == client {
			samples = append(samples, i)
		}
	}
	return samples
}
