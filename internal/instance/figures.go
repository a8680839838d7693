package instance

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/instance/backend"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// sizesAge is how long sizes are good for: whoever reaches the port may ask, and each answer is a client of the storage for a moment.
	sizesAge = 30 * time.Second
	// maxSizesDepth is that of FileShare.spec.depth.
	maxSizesDepth = 8
)

// figures are what who plans moves asks a data server for (kubectl howdah rebalance --by): how large a share's directories are, and how much
// the server serves of each share. They are told to who asks, and kept in no status: ten thousand directories that grow would be as many writes of the
// API, and a reconciliation after each.
type figures struct {
	fileServer string
	// lister is the storage, nil if it is not shared: then nothing can move.
	lister func() backend.Lister
	served func() (serverpod.Served, error)
	now    func() time.Time

	// turn has one token.
	turn chan struct{}

	mutex sync.Mutex
	known map[sizesQuestion]sizesAnswer
}

type sizesQuestion struct {
	share string
	depth int32
}

type sizesAnswer struct {
	bytes map[string]int64
	at    time.Time
}

func newFigures(dataServer string, lister func() backend.Lister, served func() (serverpod.Served, error)) *figures {
	return &figures{
		fileServer: naming.FileServerOf(dataServer), lister: lister, served: served, now: time.Now,
		turn: make(chan struct{}, 1), known: map[sizesQuestion]sizesAnswer{},
	}
}

func (f *figures) tellServed(writer http.ResponseWriter, _ *http.Request) {
	told, err := f.served()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(told)
}

func (f *figures) tellSizes(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	depth, err := strconv.ParseInt(query.Get(serverpod.SizesDepth), 10, 32)
	asked := sizesQuestion{query.Get(serverpod.SizesShare), int32(depth)}
	if err != nil || depth < 0 || depth > maxSizesDepth || asked.share == "" {
		http.Error(writer, "want share=NAME&depth=N, the share's key and 0 to 8", http.StatusBadRequest)
		return
	}
	lister := f.lister()
	if lister == nil {
		http.Error(writer, "the data servers have volumes of their own: directories can't move", http.StatusConflict)
		return
	}
	// As long as a listing may take, whatever the server allows others.
	_ = http.NewResponseController(writer).SetWriteDeadline(f.now().Add(listTimeout + relayTimeout))
	ctx, cancel := context.WithTimeout(request.Context(), listTimeout)
	defer cancel()
	bytes, err := f.sizes(ctx, lister, asked)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(serverpod.Sizes{Bytes: bytes})
}

// sizes asks the storage for one share after the other, and for none again so soon.
func (f *figures) sizes(ctx context.Context, lister backend.Lister, asked sizesQuestion) (map[string]int64, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if known, is := f.recall(asked); is {
		return known, nil
	}
	paths, err := lister.Sizes(ctx, asked.share, asked.depth)
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	for path, size := range paths {
		if path == "" {
			path = "." // The share's root, as ShareDirectories have it.
		}
		bytes[naming.Directory(f.fileServer, asked.share, path)] = size
	}
	f.remember(asked, bytes)
	return bytes, nil
}

func (f *figures) recall(asked sizesQuestion) (map[string]int64, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known, is := f.known[asked]
	return known.bytes, is && f.now().Sub(known.at) < sizesAge
}

func (f *figures) remember(asked sizesQuestion, bytes map[string]int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.now()
	maps.DeleteFunc(f.known, func(_ sizesQuestion, a sizesAnswer) bool { return now.Sub(a.at) >= sizesAge })
	f.known[asked] = sizesAnswer{bytes, now}
}
