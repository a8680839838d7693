package benchmark

import (
	"bytes"
	"hash/crc32"
	"os"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The expected numbers were drawn with numpy 2.2.6 and the statements of DLIO 2.0.0.
func TestShapesAreThoseOfDLIO(t *testing.T) {
	tests := map[string]struct {
		dataset Dataset
		first   []Shape
		last    Shape
		bytes   int64
	}{
		"samples of full size": {
			dataset: Dataset{Samples: 168, SampleSize: NominalSampleSize},
			first:   []Shape{{15865, 14125}, {7745, 12083}, {13860, 10074}, {12856, 12413}, {12119, 11614}},
			last:    Shape{15535, 14952}, bytes: 25285981919,
		},
		"samples of a hundredth of the size": {
			dataset: Dataset{Samples: 84, SampleSize: 1466006},
			first:   []Shape{{1585, 1411}, {773, 1207}, {1385, 1006}, {1284, 1240}, {1211, 1160}},
			last:    Shape{1115, 986}, bytes: 127971172,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.dataset.Shapes()
			if diff := cmp.Diff(tc.first, got[:len(tc.first)]); diff != "" {
				t.Errorf("first shapes (-want +got):\n%s", diff)
			}
			if got[len(got)-1] != tc.last {
				t.Errorf("last shape is %v, want %v", got[len(got)-1], tc.last)
			}
			sum := int64(0)
			for _, s := range got {
				sum += s.Bytes()
			}
			if sum != tc.bytes {
				t.Errorf("the arrays have %d bytes, want %d", sum, tc.bytes)
			}
		})
	}
}

func TestOrderIsThatOfDLIO(t *testing.T) {
	want := [][]int{
		{
			18, 13, 50, 26, 41, 27, 53, 35, 39, 21, 40, 11, 0, 5, 10, 23, 8, 12, 47, 30, 1, 6, 29, 52, 44, 31, 51, 24,
			15, 37, 46, 7, 20, 54, 3, 4, 16, 48, 36, 14, 49, 25, 43, 55, 9, 32, 33, 22, 42, 19, 17, 38, 34, 28, 2, 45,
		},
		{
			47, 5, 17, 51, 25, 24, 28, 4, 14, 6, 49, 11, 18, 27, 40, 52, 39, 0, 22, 46, 13, 53, 37, 34, 9, 7, 38, 44,
			23, 48, 33, 35, 1, 2, 26, 41, 8, 42, 16, 10, 19, 31, 55, 45, 21, 20, 54, 29, 43, 30, 12, 36, 3, 15, 50, 32,
		},
		{
			22, 27, 12, 38, 31, 44, 15, 41, 10, 53, 19, 11, 47, 24, 49, 34, 14, 18, 29, 33, 5, 28, 48, 3, 21, 35, 36, 9,
			52, 42, 54, 4, 13, 50, 51, 25, 39, 43, 8, 40, 30, 7, 45, 32, 6, 1, 2, 37, 55, 46, 0, 16, 26, 23, 17, 20,
		},
	}
	order := NewOrder(56, 1, 0)
	for epoch, samples := range want {
		if diff := cmp.Diff(samples, order.NextEpoch()); diff != "" {
			t.Errorf("epoch %d (-want +got):\n%s", epoch+1, diff)
		}
	}
}

func TestAcceleratorsShareTheSamplesWithoutOverlap(t *testing.T) {
	const samples, accelerators = 100, 3
	seen := map[int]int{}
	for rank := range accelerators {
		for _, s := range NewOrder(samples, accelerators, rank).NextEpoch() {
			seen[s]++
		}
	}
	if len(seen) != 99 || seen[99] != 0 {
		t.Errorf("%d samples are read, want the first 99", len(seen))
	}
	for s, n := range seen {
		if n != 1 {
			t.Errorf("sample %d is read %d times", s, n)
		}
	}
	if got := Steps(samples, accelerators); got != 4 {
		t.Errorf("an epoch has %d steps, want 4", got)
	}
}

func TestFileIsByteForByteThatOfNumpy(t *testing.T) {
	want, err := os.ReadFile("testdata/numpy-2.2.6-3x5.npz")
	if err != nil {
		t.Fatal(err)
	}
	shape := Shape{Rows: 3, Columns: 5}
	payload := make([]byte, shape.Bytes())
	for i := range payload {
		payload[i] = byte(i * 7 % 255)
	}
	sum := crc32.ChecksumIEEE(payload)
	got := append(append(NPZHead(shape, sum), payload...), NPZTail(shape, sum)...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("file (-numpy +ours):\n%s", diff)
	}
	if shape.FileSize() != int64(len(want)) {
		t.Errorf("FileSize is %d, the file has %d bytes", shape.FileSize(), len(want))
	}
}

func TestHeadOfAnotherFileIsRefused(t *testing.T) {
	shape := Shape{Rows: 300, Columns: 500}
	tests := map[string]struct {
		head []byte
		fits bool
	}{
		"the sample itself":                           {NPZHead(shape, 7), true},
		"with some of its array":                      {append(NPZHead(shape, 7), 1, 2, 3), true},
		"a sample with the same size and other sides": {NPZHead(Shape{Rows: 500, Columns: 300}, 7), false},
		"a file of zeros":                             {make([]byte, NPZHeaderSize), false},
		"a file that is empty":                        {nil, false},
		"a file that was cut":                         {NPZHead(shape, 7)[:100], false},
		"another kind of file":                        {bytes.Repeat([]byte("text "), 60), false},
		"another member's name":                       {bytes.Replace(NPZHead(shape, 7), []byte("x.npy"), []byte("z.npy"), 1), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := CheckNPZHead(tc.head, shape); (err == nil) != tc.fits {
				t.Errorf("CheckNPZHead = %v, fits is %v", err, tc.fits)
			}
		})
	}
}

func FuzzChecksumsCombine(f *testing.F) {
	f.Add([]byte("head"), []byte("tail"))
	f.Add([]byte{}, []byte{0})
	f.Add(bytes.Repeat([]byte{1}, 118), bytes.Repeat([]byte{2}, 70001))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		want := crc32.ChecksumIEEE(append(append([]byte{}, a...), b...))
		if got := crc32Combine(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b))); got != want {
			t.Errorf("combined %08x, want %08x", got, want)
		}
	})
}

func TestFilesGoToTheFoldersInTurnAndToOneClientEach(t *testing.T) {
	d := Dataset{Samples: 84, SampleSize: 1466006, Folders: []string{"train/0", "train/1", "train/2", "train/3", "train/4", "train/5"}}
	if got := d.File(7); got != "train/1/img_07_of_84.npz" {
		t.Errorf("sample 7 is %s", got)
	}
	perFolder, owners := map[string]int{}, map[int]int{}
	for client := range 2 {
		folders := map[string]bool{}
		for _, s := range d.Shard(client, 2) {
			perFolder[path.Dir(d.File(s))]++
			folders[path.Dir(d.File(s))] = true
			owners[s]++
		}
		if len(folders) != len(d.Folders) {
			t.Errorf("client %d writes to %d folders, want all", client, len(folders))
		}
	}
	for _, folder := range d.Folders {
		if perFolder[folder] != 14 {
			t.Errorf("%s gets %d files, want 14", folder, perFolder[folder])
		}
	}
	for s := range d.Samples {
		if owners[s] != 1 {
			t.Errorf("sample %d is written by %d clients", s, owners[s])
		}
	}
}

func TestOutstandingBatchesAreThoseOfTheLoader(t *testing.T) {
	for threads, want := range map[int]int{1: 2, 2: 2, 4: 4, 32: 32} {
		if got := Outstanding(threads); got != want {
			t.Errorf("%d readers: %d batches, want %d", threads, got, want)
		}
	}
}

func TestUtilizationIsThatOfDLIO(t *testing.T) {
	tests := map[string]struct {
		times   EpochTimes
		au, sps float64
	}{
		"storage that keeps up": {
			EpochTimes{Steps: 11, Compute: time.Second, Total: 12 * time.Second, First: 2 * time.Second}, 100, 77.0 / 12,
		},
		"storage that gives half": {
			EpochTimes{Steps: 11, Compute: time.Second, Total: 22 * time.Second, First: 2 * time.Second}, 50, 77.0 / 22,
		},
		"a single step has no utilization": {EpochTimes{Steps: 1, Compute: time.Second, Total: 3 * time.Second, First: 2 * time.Second}, 0, 7.0 / 3},
		"no time at all is not a division": {EpochTimes{}, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.times.AU(); got != tc.au {
				t.Errorf("AU is %v, want %v", got, tc.au)
			}
			if got := tc.times.SamplesPerSecond(); got != tc.sps {
				t.Errorf("samples/s is %v, want %v", got, tc.sps)
			}
		})
	}
}
