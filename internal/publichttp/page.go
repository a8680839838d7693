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

// Page makes an answer once for all who wait for it, and gives all of them the same bytes: who asks all the time, or reads slowly, costs no more
// than that. An answer is never older than the question, since what is measured with it would be wrong. So who asks sooner than a pause after the
// last making began waits: for age, or for three times as long as that took, up to pauseMost. It asks the handler without any header or query, so
// what the answer depends on must not be in the request.
func Page(age time.Duration, handler http.Handler) http.Handler {
	return &page{age: age, handler: handler, turn: make(chan struct{}, 1)}
}

const (
	// slowness keeps what makes answers from doing nothing else: a quarter of the time at most.
	slowness = 3
	// pauseMost leaves enough of AnswerTimeout for making and sending the answer.
	pauseMost = 3 * time.Second
)

type page struct {
	age     time.Duration
	handler http.Handler

	// turn is had by one at a time, who may read and change what follows.
	turn chan struct{}
	// began is when the last making began, next is when one may begin.
	began, next time.Time
	answer      *recorded
	packed      []byte // The body by gzip, nil until it was asked for.
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

// recorded is an answer that is kept.
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
