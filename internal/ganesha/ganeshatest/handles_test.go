package ganeshatest

import (
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The authors' vectors. Ganesha's own MAC is held against SIPHash by the tests that run ganesha.
func TestSIPHashAgainstThePublishedVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/siphash-vectors.h")
	if err != nil {
		t.Fatal(err)
	}
	var published []byte
	for _, digits := range regexp.MustCompile(`0x([0-9a-f]{2})\b`).FindAllSubmatch(text, -1) {
		value, err := strconv.ParseUint(string(digits[1]), 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		published = append(published, byte(value))
	}
	if len(published) != 64*8 {
		t.Fatalf("%d bytes of vectors", len(published))
	}
	var key [16]byte
	var input []byte
	for i := range key {
		key[i] = byte(i)
	}
	for length := range 64 {
		if got, want := SIPHash(key, input), binary.LittleEndian.Uint64(published[8*length:]); got != want {
			t.Errorf("%d bytes: %016x, not %016x", length, got, want)
		}
		input = append(input, byte(length))
	}
}
