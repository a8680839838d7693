package publichttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Page makes one answer for all waiting requests and sends all of them the same bytes, so that frequent requests and slow
// readers cost no more than one. An answer is never older than its request, because measurements with it would be wrong.
// Between the starts of two answers there is a pause of age, or of three times as long as the last one took to make, up to
// pauseMost; requests wait for it. Page calls the handler without header and query, so the answer must not depend on them.
func Page(age time.Duration, handler http.Handler) http.Handler {
	return &page{age: age, handler: handler, turn: make(chan struct{}, 1)}
}

const (
	// slowness limits the part of the time that is used to make answers to a quarter.
	slowness = 3
	// pauseMost leaves enough of AnswerTimeout to make and send the answer.
	pauseMost = 3 * time.Second
)

type page struct {
	age     time.Duration
	handler http.Handler

	// turn is held by one request at a time, which may read and change the fields below.
	turn chan struct{}
	// began is when the last answer was started, next is when the next may start.
	began, next time.Time
	answer      *recorded
	packed      []byte // The compressed body, nil until it was requested.
}

func (p *page) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	answer, body, isPacked := p.read(strings.Contains(request.Header.Get("Accept-Encoding"), "gzip"))
	header := writer.Header()
	for name, values := range answer.header {
		header[name] = values
	}
	if isPacked {
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	writer.WriteHeader(answer.status)
	_, _ = writer.Write(body)
}

func (p *page) read(packed bool) (answer *recorded, body []byte, isPacked bool) {
	asked := time.Now()
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.answer == nil || p.began.Before(asked) {
		time.Sleep(time.Until(p.next))
		p.began = time.Now()
		p.answer, p.packed = record(p.handler), nil
		p.next = time.Now().Add(min(max(p.age, slowness*time.Since(p.began)), pauseMost))
	}
	if !packed {
		return p.answer, p.answer.body.Bytes(), false
	}
	if p.packed == nil {
		p.packed = pack(p.answer.body.Bytes())
	}
	return p.answer, p.packed, true
}

func record(handler http.Handler) *recorded {
	ctx, cancel := context.WithTimeout(context.Background(), AnswerTimeout)
	defer cancel()
	answer := &recorded{status: http.StatusOK, header: http.Header{}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		panic(err) // These arguments always make one.
	}
	handler.ServeHTTP(answer, request)
	return answer
}

// recorded is a stored answer.
type recorded struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(status int) { r.status = status }

func (r *recorded) Write(part []byte) (int, error) { return r.body.Write(part) }

func pack(body []byte) []byte {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		panic(err) // The level is one of gzip's.
	}
	_, _ = writer.Write(body) // A buffer takes everything.
	_ = writer.Close()
	return packed.Bytes()
}
