package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestThePicturesAreThoseOfTheDrawings(t *testing.T) {
	drawn, err := drawAll("../../docs/pictures")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range drawn {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its drawing says: make pictures (%v)", file, err)
		}
		wellFormed(t, file, want)
	}
}

func wellFormed(t *testing.T, file string, svg []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func TestADrawingHasATitle(t *testing.T) {
	if _, err := draw("+--+\n"); err == nil || !strings.Contains(err.Error(), "# What it shows") {
		t.Errorf("%v", err)
	}
	svg, err := draw("# a < b\n\n<-->\n")
	if err != nil || !strings.Contains(string(svg), "<title>a &lt; b</title>") {
		t.Errorf("%v\n%s", err, svg)
	}
}
