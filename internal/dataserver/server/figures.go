package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/howdah/howdah/internal/dataserver/backend"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/serverpod"
)

const (
	// sizesAge is how long sizes are good for: whoever reaches the port may ask, and each answer is a client of the storage for a moment.
	sizesAge = 30 * time.Second
	// sizesFailureAge is how long it is not tried again what failed.
	sizesFailureAge = 3 * time.Second
	// maxSizesDepth is that of FileShare.spec.depth.
	maxSizesDepth = 8
	// maxSizes is how many directories an answer may have: ten times what a share has by default. Who asks for a depth that the share's
	// directories don't have could ask for millions.
	maxSizes = 100_000
	// maxSizesKept is how many answers are kept.
	maxSizesKept = 16
)

// Figures are what who plans moves asks a data server for (kubectl howdah rebalance --by): how large a share's directories are, and how much
// the server serves of each share. They are told to who asks, and kept in no status: ten thousand directories that grow would be as many writes of the
// API, and a reconciliation after each.
type Figures struct {
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
	err   error
	at    time.Time
}

// NewFigures makes the figures of a data server. The lister gives the storage, nil if directories can't move.
func NewFigures(dataServer string, lister func() backend.Lister, served func() (serverpod.Served, error)) *Figures {
	return &Figures{
		fileServer: naming.FileServerOf(dataServer), lister: lister, served: served, now: time.Now,
		turn: make(chan struct{}, 1), known: map[sizesQuestion]sizesAnswer{},
	}
}

func (f *Figures) answerServed(writer http.ResponseWriter, _ *http.Request) {
	told, err := f.served()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(told)
}

func (f *Figures) answerSizes(writer http.ResponseWriter, request *http.Request) {
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
func (f *Figures) sizes(ctx context.Context, lister backend.Lister, asked sizesQuestion) (map[string]int64, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	known, is := f.recall(asked)
	if !is {
		// It goes on if who asked has gone: else whoever asks and goes has the storage asked all the time.
		walking, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		known.bytes, known.err = f.ask(walking, lister, asked)
		f.remember(asked, known)
	}
	return known.bytes, known.err
}

// ask asks the storage, and names directories as the API does.
func (f *Figures) ask(ctx context.Context, lister backend.Lister, asked sizesQuestion) (map[string]int64, error) {
	paths, err := lister.Sizes(ctx, asked.share, asked.depth)
	if err != nil {
		return nil, err
	}
	if len(paths) > maxSizes {
		return nil, fmt.Errorf("share %s has %d directories at depth %d, and sizes are told of %d at most", asked.share, len(paths), asked.depth, maxSizes)
	}
	bytes := map[string]int64{}
	for path, size := range paths {
		if path == "" {
			path = "." // The share's root, as ShareDirectories have it.
		}
		bytes[naming.Directory(f.fileServer, asked.share, path)] = size
	}
	return bytes, nil
}

func (f *Figures) recall(asked sizesQuestion) (sizesAnswer, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known, is := f.known[asked]
	age := sizesAge
	if known.err != nil {
		age = sizesFailureAge
	}
	return known, is && f.now().Sub(known.at) < age
}

func (f *Figures) remember(asked sizesQuestion, answer sizesAnswer) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.now()
	maps.DeleteFunc(f.known, func(_ sizesQuestion, a sizesAnswer) bool { return now.Sub(a.at) >= sizesAge })
	answer.at = now
	if len(f.known) >= maxSizesKept {
		clear(f.known)
	}
	f.known[asked] = answer
}
