package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/howdah/howdah/internal/dataserver/supervisor"
	"github.com/howdah/howdah/internal/publichttp"
	"github.com/howdah/howdah/internal/serverpod"
)

// exporterTimeout limits a read of ganesha's metrics; with a thousand shares they are about 15 MB.
const exporterTimeout = 2 * ganeshaTimeout

// byClient are the metric families with a series for each client address, which have no bound. Our own build of ganesha
// has none of them.
var byClient = [][]byte{
	[]byte("client_requests_total"), []byte("client_bytes_received_total"), []byte("client_bytes_sent_total"), []byte("last_client_update"),
}

// NewGaneshaHandler serves ganesha's metrics under ganesha's names, without those that it counts by client address.
func NewGaneshaHandler(state func() supervisor.State, url string) http.Handler {
	client := &http.Client{Timeout: exporterTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	mux := http.NewServeMux()
	mux.Handle("GET "+serverpod.MetricsPath, publichttp.Page(answerAge, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if !state().Initialized {
			http.Error(writer, "ganesha is not up", http.StatusServiceUnavailable)
			return
		}
		text, err := readExporter(request.Context(), client, url)
		if err != nil {
			http.Error(writer, "can't read ganesha's counters: "+err.Error(), http.StatusBadGateway)
			return
		}
		writer.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = writer.Write(text)
	})))
	return mux
}

func readExporter(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ganesha's metrics port answers %s", response.Status)
	}
	return withoutClients(io.LimitReader(response.Body, maxGaneshaText))
}

// withoutClients leaves out the families of byClient. It also leaves out a last line that the size limit cut.
func withoutClients(text io.Reader) ([]byte, error) {
	var kept bytes.Buffer
	lines := bufio.NewReaderSize(text, maxExporterLine)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return kept.Bytes(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ganesha's metrics: %w", err)
		}
		if !isByClient(line) {
			kept.Write(line)
		}
	}
}

// maxExporterLine is the maximum length of a line in bytes; ganesha's have about 200 bytes and a path.
const maxExporterLine = 64 << 10

// isByClient reports whether a sample or a description ("# TYPE name counter") is of a family in byClient.
func isByClient(line []byte) bool {
	for _, comment := range [][]byte{[]byte("# HELP "), []byte("# TYPE ")} {
		line = bytes.TrimPrefix(line, comment)
	}
	name := line[:max(0, bytes.IndexAny(line, "{ \n"))]
	return slices.ContainsFunc(byClient, func(family []byte) bool { return bytes.Equal(family, name) })
}
