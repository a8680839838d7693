package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/howdah/howdah/internal/benchmark"
)

const (
	// blockSize is the size of reads and writes: what Linux negotiates as rsize and wsize with ganesha.
	blockSize = 1 << 20
	// progressEvery is how often a client reports, for one client; more clients report
	// less often each, to spare the API server.
	progressEvery = 2 * time.Second
	// generateWriters is the number of files that a client writes at a time.
	generateWriters = 4
)

// Generator writes one client's part of a dataset.
type Generator struct {
	// Plan describes the dataset.
	Plan benchmark.Plan
	// Client is the number of this client, from 0.
	Client int
	// Data is where the share is mounted.
	Data string
	// Journal is for the progress.
	Journal Journal
	// Log is for messages to people.
	Log *slog.Logger
}

// Generate makes the folders and writes the files that are missing or wrong. It
// may be stopped and started again at any time: a file has its name only once it is complete and on stable storage.
func (g *Generator) Generate(ctx context.Context) error {
	dataset := g.Plan.Dataset()
	if err := g.makeFolders(ctx, dataset.Folders); err != nil {
		return err
	}
	if g.Client == 0 {
		if err := g.writeManifest(); err != nil {
			return err
		}
	}
	shapes, shard := dataset.Shapes(), dataset.Shard(g.Client, g.Plan.Clients)
	progress := benchmark.GenerateProgress{Files: len(shard)}
	done := make(chan int64)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		failed <- inParallel(ctx, generateWriters, shard, func(ctx context.Context, sample int) error {
			if err := g.ensureSample(ctx, dataset.File(sample), sample, shapes[sample]); err != nil {
				return err
			}
			select {
			case done <- shapes[sample].FileSize():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	ticker := time.NewTicker(reportEvery(g.Plan.Clients))
	defer ticker.Stop()
	for {
		select {
		case bytes := <-done:
			progress.Done++
			progress.Bytes += bytes
		case <-ticker.C:
			g.report(ctx, progress)
		case err := <-failed:
			if err != nil {
				return fmt.Errorf("generating the dataset: %w", err)
			}
			g.report(ctx, progress)
			return nil
		}
	}
}

func reportEvery(clients int) time.Duration {
	return max(progressEvery, time.Duration(clients)*250*time.Millisecond)
}

func (g *Generator) report(ctx context.Context, p benchmark.GenerateProgress) {
	g.Log.Info("generating", "filesDone", p.Done, "files", p.Files, "megabytes", p.Bytes/1e6)
	text, err := json.Marshal(p)
	if err == nil {
		err = g.Journal.Record(ctx, map[string]string{benchmark.KeyGenerate(g.Client): string(text)})
	}
	if err != nil {
		// Progress is for people; the dataset does not depend on it.
		g.Log.Warn("progress was not recorded", "error", err)
	}
}

// makeFolders makes every folder. Clients do it at the same time; the share makes
// each once, and answers the others that it exists.
func (g *Generator) makeFolders(ctx context.Context, folders []string) error {
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(g.Data, folder), 0o755); err != nil {
			return fmt.Errorf("making folder %s of the dataset (the benchmark runs as the share's owner: check that it may write): %w", folder, err)
		}
	}
	return nil
}

// writeManifest puts the parameters beside the data, for people who find the
// dataset later. It goes to the first folder: the levels above hold no files.
func (g *Generator) writeManifest() error {
	text, err := json.MarshalIndent(map[string]any{
		"format":     "npz of dlio-benchmark 2.0.0, unet3d",
		"samples":    g.Plan.Samples,
		"sampleSize": g.Plan.SampleSize,
		"folders":    g.Plan.Folders,
		"content":    "ChaCha8 with the key SHA-256(\"howdah unet3d SAMPLES SAMPLESIZE NUMBER\") for each file",
	}, "", "  ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf(".howdah-dataset-%d-%d.json", g.Plan.Samples, g.Plan.SampleSize)
	return writeDurably(filepath.Join(g.Data, g.Plan.Folders[0], name), func(file *os.File) error {
		_, err := file.Write(append(text, '\n'))
		return err
	})
}

// ensureSample writes a sample unless its file is there with the right size and head.
func (g *Generator) ensureSample(ctx context.Context, name string, sample int, shape benchmark.Shape) error {
	path := filepath.Join(g.Data, name)
	if ok, err := isSample(path, shape); ok || err != nil {
		return err
	}
	key := contentKey(g.Plan, sample)
	return writeDurably(path, func(file *os.File) error { return writeSample(ctx, file, key, shape) })
}

func isSample(path string, shape benchmark.Shape) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil || info.Size() != shape.FileSize() {
		return false, err
	}
	head := make([]byte, benchmark.NPZHeaderSize)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return benchmark.CheckNPZHead(head[:n], shape) == nil, nil
}

// contentKey is the key of a file's content: no two files of any datasets have an equal one.
func contentKey(p benchmark.Plan, sample int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "howdah unet3d %d %d %d", p.Samples, p.SampleSize, sample))
}

// writeSample writes a sample. Its array is the output of ChaCha8 with a key of its own, so
// that no storage can compress it or find it twice; DLIO gives the files of different ranks equal content.
func writeSample(ctx context.Context, file *os.File, key [sha256.Size]byte, shape benchmark.Shape) error {
	content := rand.NewChaCha8(key)
	head := benchmark.NPZHead(shape, 0)
	at, sum := int64(len(head)), uint32(0)
	block := make([]byte, min(blockSize, shape.Bytes()))
	for left := shape.Bytes(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// The first block ends at a multiple of blockSize of the file, and so do all but the last.
		part := block[:min(int64(len(block)), left, blockSize-at%blockSize)]
		fill(content, part)
		sum = crc32.Update(sum, crc32.IEEETable, part)
		if _, err := file.WriteAt(part, at); err != nil {
			return err
		}
		at, left = at+int64(len(part)), left-int64(len(part))
	}
	if _, err := file.WriteAt(benchmark.NPZTail(shape, sum), at); err != nil {
		return err
	}
	_, err := file.WriteAt(benchmark.NPZHead(shape, sum), 0)
	return err
}

func fill(content *rand.ChaCha8, part []byte) {
	for len(part) >= 8 {
		binary.LittleEndian.PutUint64(part, content.Uint64())
		part = part[8:]
	}
	if len(part) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], content.Uint64())
		copy(part, last[:])
	}
}

// writeDurably writes a file under a temporary name and gives it its name when it is on stable storage.
func writeDurably(path string, write func(*os.File) error) (err error) {
	file, err := os.OpenFile(path+".partial", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // best effort: it is overwritten by the next try
		}
	}()
	err = errors.Join(write(file), file.Sync())
	dropCached(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(file.Name(), path)
}

// dropCached removes a file's clean pages from this machine's page cache, so that the next read asks the server. A file system that can't
// do that is not an error: the servers' counters show it.
func dropCached(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
