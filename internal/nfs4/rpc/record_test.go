package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

// fragment is a record fragment; size is what its header says.
func fragment(last bool, size int, data []byte) []byte {
	word := uint32(size)
	if last {
		word |= lastFragment
	}
	return append(binary.BigEndian.AppendUint32(nil, word), data...)
}

func whole(data []byte) []byte { return fragment(true, len(data), data) }

// RFC 5531 section 11.
func TestReadRecord(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 3000)
	for name, test := range map[string]struct {
		stream []byte
		limit  int
		want   []byte
		err    error
		left   int
	}{
		"one fragment":                       {whole([]byte("abc")), 10, []byte("abc"), nil, 0},
		"several fragments, one empty":       {bytes.Join([][]byte{fragment(false, 2, []byte("ab")), fragment(false, 0, nil), fragment(true, 1, []byte("c"))}, nil), 10, []byte("abc"), nil, 0},
		"the next record stays":              {append(whole([]byte("abc")), whole([]byte("de"))...), 10, []byte("abc"), nil, 6},
		"an empty record":                    {whole(nil), 10, nil, nil, 0},
		"as long as permitted":               {whole(long), len(long), long, nil, 0},
		"one byte longer":                    {whole(long), len(long) - 1, nil, ErrTooLarge, len(long)},
		"longer by the last fragment":        {append(fragment(false, 3, []byte("abc")), whole([]byte("def"))...), 5, []byte("abc"), ErrTooLarge, 3},
		"a claim of 2 GiB":                   {fragment(true, 1<<31-1, nil), 256 << 10, nil, ErrTooLarge, 0},
		"nothing":                            {nil, 10, nil, io.EOF, 0},
		"half a header":                      {[]byte{0x80, 0}, 10, nil, io.ErrUnexpectedEOF, 0},
		"the end within a fragment":          {fragment(true, 5, []byte("abc")), 10, nil, io.ErrUnexpectedEOF, 0},
		"the end at the start of a fragment": {fragment(true, 5, nil), 10, nil, io.ErrUnexpectedEOF, 0},
		"the end between fragments":          {fragment(false, 3, []byte("abc")), 10, []byte("abc"), io.ErrUnexpectedEOF, 0},
		"empty fragments without end":        {bytes.Repeat(fragment(false, 0, nil), 5000), 10, nil, ErrTooLarge, 4 * (5000 - maxFragments)},
	} {
		t.Run(name, func(t *testing.T) {
			stream := bytes.NewReader(test.stream)
			got, err := ReadRecord(stream, test.limit)
			if !errors.Is(err, test.err) || !bytes.Equal(got, test.want) {
				t.Errorf("%d bytes, %v; want %d, %v", len(got), err, len(test.want), test.err)
			}
			if stream.Len() != test.left {
				t.Errorf("%d bytes left, want %d", stream.Len(), test.left)
			}
			slow, err := ReadRecord(iotest.OneByteReader(bytes.NewReader(test.stream)), test.limit)
			if !errors.Is(err, test.err) || !bytes.Equal(slow, test.want) {
				t.Errorf("byte by byte: %d bytes, %v", len(slow), err)
			}
		})
	}
}

// A claimed length must not be allocated before its bytes are there.
func TestRecordMemoryFollowsTheTraffic(t *testing.T) {
	const limit = 1 << 30
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadRecord(bytes.NewReader(fragment(true, limit, make([]byte, 100))), limit); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
		t.Errorf("%d KiB allocated for 100 bytes", allocated>>10)
	}
}

func TestFinishRecord(t *testing.T) {
	record := FinishRecord(append(NewRecord(3), "abc"...))
	if !bytes.Equal(record, whole([]byte("abc"))) {
		t.Errorf("%x", record)
	}
}

// FuzzRecord: a record is never longer than permitted, and reading is the
// inverse of writing whatever comes.
func FuzzRecord(f *testing.F) {
	f.Add(whole([]byte("abc")))
	f.Add(append(fragment(false, 2, []byte("ab")), whole([]byte("c"))...))
	f.Add(fragment(true, 1<<31-1, nil))
	f.Add([]byte{0x80, 0, 0})
	f.Add(whole(callBytes(1, nullCall)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1000
		reader := bytes.NewReader(stream)
		for {
			record, err := ReadRecord(reader, limit)
			if len(record) > limit {
				t.Fatalf("%d bytes", len(record))
			}
			if err != nil {
				return
			}
			again, err := ReadRecord(bytes.NewReader(FinishRecord(append(NewRecord(0), record...))), limit)
			if err != nil || !bytes.Equal(again, record) {
				t.Fatalf("%x became %x: %v", record, again, err)
			}
		}
	})
}
