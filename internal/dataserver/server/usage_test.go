package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

// counted counts how often the storage is asked.
type counted struct {
	lists
	asked int
}

func (c *counted) Sizes(ctx context.Context, share string, depth int32) (map[string]int64, error) {
	c.asked++
	return c.lists.Sizes(ctx, share, depth)
}

// get sends a request to the data server's port and returns the status code and the body.
func get(usage *Usage, path string) (int, string) {
	mux := NewHandler(NewProbes(nil, nil, &Expectation{}), Ganesha{}, usage, NewMetrics("default", "training-0"))
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return answer.Code, answer.Body.String()
}

func TestSizesDontShowPaths(t *testing.T) {
	storage := &counted{}
	f := NewUsage("training-0", func() backend.Lister { return storage }, nil)
	now := time.Unix(1000, 0)
	f.now = func() time.Time { return now }
	code, text := get(f, "/sizes?share=s&depth=1")
	var got serverpod.Sizes
	mustWork(t, "read it", json.Unmarshal([]byte(text), &got))
	want := map[string]int64{naming.Directory("training", "s", "train"): 1 << 30, naming.Directory("training", "s", "secret name"): 2}
	if diff := cmp.Diff(want, got.Bytes); code != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
	if strings.Contains(text, "secret name") {
		t.Errorf("everybody can read a tenant's paths: %s", text)
	}
	got = serverpod.Sizes{}
	if code, text = get(f, "/sizes?share=s&depth=0"); json.Unmarshal([]byte(text), &got) != nil || got.Bytes[naming.Directory("training", "s", ".")] != 3<<40 {
		t.Errorf("a share that is a single directory: %d %s", code, text)
	}

	// Everybody who reaches the port may ask, but the storage is asked once in half a minute.
	for range 5 {
		get(f, "/sizes?share=s&depth=1")
	}
	if storage.asked != 2 {
		t.Errorf("the storage was asked %d times", storage.asked)
	}
	now = now.Add(sizesAge)
	get(f, "/sizes?share=s&depth=1")
	if storage.asked != 3 || len(f.known) != 1 {
		t.Errorf("the storage was asked %d times, and %d answers are kept", storage.asked, len(f.known))
	}
}

func TestSizesErrors(t *testing.T) {
	storage := &counted{}
	f := NewUsage("training-0", func() backend.Lister { return storage }, nil)
	onVolumes := NewUsage("training-0", func() backend.Lister { return nil }, nil)
	for name, tc := range map[string]struct {
		from *Usage
		path string
		code int
		says string
	}{
		"no share":             {f, "/sizes?depth=1", http.StatusBadRequest, "share=NAME"},
		"no depth":             {f, "/sizes?share=s", http.StatusBadRequest, "depth=N"},
		"too deep":             {f, "/sizes?share=s&depth=9", http.StatusBadRequest, "0 to 8"},
		"less than nothing":    {f, "/sizes?share=s&depth=-1", http.StatusBadRequest, "0 to 8"},
		"a share not exported": {f, "/sizes?share=other&depth=1", http.StatusBadGateway, "not exported"},
		"on volumes":           {onVolumes, "/sizes?share=s&depth=1", http.StatusConflict, "can't move"},
	} {
		if code, text := get(tc.from, tc.path); code != tc.code || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// Whoever asks for shares that are not there must not have the storage asked for another one again.
func TestQuestionsForOtherSharesLeaveAnAnswerCached(t *testing.T) {
	storage := &counted{}
	f := NewUsage("training-0", func() backend.Lister { return storage }, nil)
	f.now = func() time.Time { return time.Unix(1000, 0) }
	get(f, "/sizes?share=s&depth=1")
	for i := range 2 * maxSizesKept {
		get(f, "/sizes?depth=1&share=other-"+strconv.Itoa(i))
	}
	asked := storage.asked
	if code, _ := get(f, "/sizes?share=s&depth=1"); code != http.StatusOK || storage.asked != asked {
		t.Errorf("%d, and the storage was asked again", code)
	}
	if len(f.known) > maxSizesKept {
		t.Errorf("%d answers are kept", len(f.known))
	}
}

func TestSizesCachesFailures(t *testing.T) {
	storage := &counted{}
	f := NewUsage("training-0", func() backend.Lister { return storage }, nil)
	now := time.Unix(1000, 0)
	f.now = func() time.Time { return now }
	for range 5 {
		if code, _ := get(f, "/sizes?share=other&depth=1"); code != http.StatusBadGateway {
			t.Errorf("%d", code)
		}
	}
	now = now.Add(sizesFailureAge)
	get(f, "/sizes?share=other&depth=1")
	if storage.asked != 2 {
		t.Errorf("the storage was asked %d times", storage.asked)
	}
}

// slow is a storage that answers when the test lets it, unless the context ends first.
type slow struct {
	lists
	asked, let chan struct{}
}

func (s *slow) Sizes(ctx context.Context, _ string, _ int32) (map[string]int64, error) {
	s.asked <- struct{}{}
	select {
	case <-s.let:
		return map[string]int64{"": 1}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A client that asks and disconnects again and again causes one request to the storage.
func TestSizesAreCachedAfterTheClientDisconnects(t *testing.T) {
	storage := &slow{asked: make(chan struct{}, 10), let: make(chan struct{})}
	f := NewUsage("training-0", func() backend.Lister { return storage }, nil)
	ctx, disconnect := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.sizes(ctx, storage, sizesQuestion{"s", 1})
		done <- err
	}()
	<-storage.asked
	disconnect()
	close(storage.let)
	mustWork(t, "the first request", <-done)
	if _, err := f.sizes(t.Context(), storage, sizesQuestion{"s", 1}); err != nil || len(storage.asked) != 0 {
		t.Errorf("%v; asked once more: %d", err, len(storage.asked))
	}
}

// wide is a storage with more directories than maxSizes.
type wide struct{ lists }

func (wide) Sizes(context.Context, string, int32) (map[string]int64, error) {
	sizes := map[string]int64{}
	for i := range maxSizes + 1 {
		sizes[strconv.Itoa(i)] = 1
	}
	return sizes, nil
}

func TestAnAnswerIsBounded(t *testing.T) {
	f := NewUsage("training-0", func() backend.Lister { return &wide{} }, nil)
	if code, text := get(f, "/sizes?share=s&depth=8"); code != http.StatusBadGateway || !strings.Contains(text, "100001 directories at depth 8") {
		t.Errorf("%d %s", code, text)
	}
	for depth := range int32(maxSizesDepth + 1) {
		for _, share := range []string{"a", "b", "c"} {
			f.remember(sizesQuestion{share, depth}, sizesAnswer{})
		}
	}
	if len(f.known) > maxSizesKept {
		t.Errorf("%d answers are kept", len(f.known))
	}
}

func TestServedIsByShare(t *testing.T) {
	state := &supervisor.State{Starts: 2, PID: 1, Initialized: true}
	collector := collectorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(ganeshaText + `nfs_bytes_sent_by_export_total{export="export_id=1",operation="write",path="/alpha/0"} 500
nfs_bytes_received_by_export_total{export="export_id=2",operation="read",path="/gone/0"} 9
nfs_request_size_by_export_bytes_count{export="export_id=1",operation="read",path="/alpha/0"} 40
nfs_request_size_by_export_bytes_count{export="export_id=1",operation="write",path="/alpha/0"} 5
nfsv4__op_count{op="SEQUENCE",status="NFS4_OK"} 60
nfsv4__op_count{op="SEQUENCE",status="NFS4ERR_BADSESSION"} 1
`))
	}, state)
	collector.source.now = func() time.Time { return time.Unix(1000, 0).UTC() }
	f := NewUsage("training-0", nil, collector.Served)
	code, text := get(f, "/served")
	var got serverpod.Served
	mustWork(t, "read it", json.Unmarshal([]byte(text), &got))
	if got.CPUSeconds <= 0 || got.CPUTime.IsZero() { // of process 1
		t.Errorf("processor time %v at %v", got.CPUSeconds, got.CPUTime)
	}
	got.CPUSeconds, got.CPUTime = 0, time.Time{}
	if diff := cmp.Diff(serverpod.Served{
		Start: 2, Time: time.Unix(1000, 0).UTC(), Bytes: map[string]uint64{"alpha": 4500}, Requests: 61,
		Shares: map[string]serverpod.ServedShare{"alpha": {ReadBytes: 4000, WrittenBytes: 500, Reads: 40, Writes: 5}},
	}, got); code != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
	f.served = func() (serverpod.Served, error) { return serverpod.Served{}, errors.New("ganesha is not up") }
	if code, text := get(f, "/served"); code != http.StatusBadGateway || !strings.Contains(text, "not up") {
		t.Errorf("%d %s", code, text)
	}
}
