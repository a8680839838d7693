package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// profile writes CPU profiles of the operator and of the API server, one for each 10 seconds, until stop is called, and
// then one of the operator's heap.
func profile(ctx context.Context, operator *process, step string) (stop func() error) {
	folder := operator.server.profiles
	if folder == "" {
		return func() error { return nil }
	}
	step = strings.ReplaceAll(step, " ", "-")
	api := profileOne(ctx, filepath.Join(folder, "apiserver-"+step), operator.server.client, operator.server.url)
	own := profileOne(ctx, filepath.Join(folder, "operator-"+step), http.DefaultClient, operator.profiles)
	return func() error {
		return errors.Join(own(), api(), download(ctx, filepath.Join(folder, "operator-"+step+"-heap.pprof"), http.DefaultClient, operator.profiles+"/debug/pprof/heap?gc=1"))
	}
}

func profileOne(ctx context.Context, prefix string, client *http.Client, url string) (stop func() error) {
	done := make(chan error, 1)
	end := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			err := download(ctx, fmt.Sprintf("%s-%d.pprof", prefix, n), client, url+"/debug/pprof/profile?seconds=10")
			select {
			case <-end:
				done <- err
				return
			default:
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error {
		close(end)
		return <-done
	}
}

func download(ctx context.Context, path string, client *http.Client, url string) error {
	body, err := get(ctx, client, url)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}

func get(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET %s: %s", url, response.Status), response.Body.Close())
	}
	return response.Body, nil
}
