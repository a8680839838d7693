package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Archive is a bundle being written. Everything that is added goes through Text or Object.
type Archive struct {
	folder string
	at     time.Time
	zip    *gzip.Writer
	tar    *tar.Writer
}

// New begins an archive in which everything is below a folder.
func New(to io.Writer, folder string, at time.Time) *Archive {
	zip := gzip.NewWriter(to)
	return &Archive{folder: folder, at: at, zip: zip, tar: tar.NewWriter(zip)}
}

// Close ends the archive.
func (a *Archive) Close() error { return errors.Join(a.tar.Close(), a.zip.Close()) }

// AddText adds a text.
func (a *Archive) AddText(name, text string) error { return a.add(name, []byte(Text(text))) }

// AddList adds the objects of a list as the API server gave it, and returns how many there are.
func (a *Archive) AddList(name string, list []byte) (int, error) {
	var content struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(list, &content); err != nil {
		return 0, fmt.Errorf("reading a list for %s: %w", name, err)
	}
	kind := strings.TrimSuffix(content.Kind, "List")
	kept := make([]map[string]any, 0, len(content.Items))
	for _, item := range content.Items {
		if item["kind"] == nil { // Items of a list have none.
			item["kind"] = kind
		}
		if clean := Object(item); clean != nil {
			kept = append(kept, clean)
		}
	}
	if len(kept) == 0 {
		return 0, nil
	}
	encoded, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return 0, err
	}
	return len(kept), a.add(name, encoded)
}

func (a *Archive) add(name string, content []byte) error {
	header := &tar.Header{Name: a.folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: a.at, Typeflag: tar.TypeReg}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}
