package publichttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Page makes an answer once for all who ask within its age, and gives all of them the same bytes: who asks all the time, or reads slowly, costs
// no more than that. An answer that takes long to make is good for longer, ten times as long as it took. It asks the handler without any header or query, so what the answer depends on must not be in the request.
func Page(age time.Duration, handler http.Handler) http.Handler {
	return &page{age: age, handler: handler, now: time.Now}
}

// slowness is how many times longer than it took to make an answer is good for at least.
const slowness = 10

type page struct {
	age     time.Duration
	handler http.Handler
	now     func() time.Time

	mutex  sync.Mutex
	until  time.Time
	answer *recorded
	packed []byte // The body by gzip, nil until it was asked for.
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
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if began := p.now(); p.answer == nil || !began.Before(p.until) {
		p.answer, p.packed = record(p.handler), nil
		ended := p.now()
		p.until = ended.Add(max(p.age, slowness*ended.Sub(began)))
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
