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
	// sizesAge is how long sizes are cached: everybody who reaches the port may ask, and each uncached answer is a client
	// of the storage.
	sizesAge = 30 * time.Second
	// sizesFailureAge is how long an error is cached.
	sizesFailureAge = 3 * time.Second
	// maxSizesDepth is the maximum of FileShare.spec.depth.
	maxSizesDepth = 8
	// maxSizes is the maximum number of directories in an answer: ten times the default limit of a share. A request with a
	// greater depth than the share's directories could match millions.
	maxSizes = 100_000
	// maxSizesKept is the maximum number of cached answers.
	maxSizesKept = 16
)

// Usage answers what a planner of moves needs (kubectl howdah rebalance --by): the sizes of a share's directories,
// and how much the server serves of each share. They are not in a status: ten thousand growing directories would cause
// as many writes to the API and as many reconciliations.
type Usage struct {
	fileServer string
	// lister returns the storage; nil if the data servers don't share it, so that directories can't move.
	lister func() backend.Lister
	served func() (serverpod.Served, error)
	now    func() time.Time

	// turn allows one request to the storage at a time.
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

// NewUsage makes the usage of a data server. lister returns the storage; nil if directories can't move.
func NewUsage(dataServer string, lister func() backend.Lister, served func() (serverpod.Served, error)) *Usage {
	return &Usage{
		fileServer: naming.FileServerOf(dataServer), lister: lister, served: served, now: time.Now,
		turn: make(chan struct{}, 1), known: map[sizesQuestion]sizesAnswer{},
	}
}

func (u *Usage) answerServed(writer http.ResponseWriter, _ *http.Request) {
	served, err := u.served()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(served)
}

func (u *Usage) answerSizes(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	depth, err := strconv.ParseInt(query.Get(serverpod.SizesDepth), 10, 32)
	asked := sizesQuestion{query.Get(serverpod.SizesShare), int32(depth)}
	if err != nil || depth < 0 || depth > maxSizesDepth || asked.share == "" {
		http.Error(writer, "want share=NAME&depth=N, the share's key and 0 to 8", http.StatusBadRequest)
		return
	}
	lister := u.lister()
	if lister == nil {
		http.Error(writer, "the data servers have volumes of their own: directories can't move", http.StatusConflict)
		return
	}
	// A listing may take longer than the server's usual write timeout.
	_ = http.NewResponseController(writer).SetWriteDeadline(u.now().Add(listTimeout + relayTimeout))
	ctx, cancel := context.WithTimeout(request.Context(), listTimeout)
	defer cancel()
	bytes, err := u.sizes(ctx, lister, asked)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(serverpod.Sizes{Bytes: bytes})
}

// sizes returns a cached answer, or asks the storage, one request at a time.
func (u *Usage) sizes(ctx context.Context, lister backend.Lister, asked sizesQuestion) (map[string]int64, error) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	known, is := u.recall(asked)
	if !is {
		// Continue after the client disconnects, so that the answer is cached. Otherwise a client that asks and disconnects
		// again and again would load the storage all the time.
		walking, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		known.bytes, known.err = u.ask(walking, lister, asked)
		u.remember(asked, known)
	}
	return known.bytes, known.err
}

// ask asks the storage, and returns sizes by the names of ShareDirectories.
func (u *Usage) ask(ctx context.Context, lister backend.Lister, asked sizesQuestion) (map[string]int64, error) {
	paths, err := lister.Sizes(ctx, asked.share, asked.depth)
	if err != nil {
		return nil, err
	}
	if len(paths) > maxSizes {
		return nil, fmt.Errorf("share %s has %d directories at depth %d, more than the maximum of %d", asked.share, len(paths), asked.depth, maxSizes)
	}
	bytes := map[string]int64{}
	for path, size := range paths {
		if path == "" {
			path = "." // ShareDirectories call the share's root ".".
		}
		bytes[naming.Directory(u.fileServer, asked.share, path)] = size
	}
	return bytes, nil
}

func (u *Usage) recall(asked sizesQuestion) (sizesAnswer, bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	known, is := u.known[asked]
	age := sizesAge
	if known.err != nil {
		age = sizesFailureAge
	}
	return known, is && u.now().Sub(known.at) < age
}

func (u *Usage) remember(asked sizesQuestion, answer sizesAnswer) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	now := u.now()
	maps.DeleteFunc(u.known, func(_ sizesQuestion, a sizesAnswer) bool { return now.Sub(a.at) >= sizesAge })
	answer.at = now
	if len(u.known) >= maxSizesKept {
		// Not answers that cost the storage something: whoever asks for shares that are not there would have them made again and again.
		maps.DeleteFunc(u.known, func(_ sizesQuestion, a sizesAnswer) bool { return a.err != nil })
	}
	if len(u.known) >= maxSizesKept {
		clear(u.known)
	}
	u.known[asked] = answer
}
