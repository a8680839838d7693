package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// lastFragment marks the last fragment of a record (RFC 5531 section 11).
	lastFragment = 1 << 31
	// readStep is how much of a record is allocated before its bytes have arrived,
	// so that a claimed length costs the client real traffic.
	readStep = 4 << 10
	// maxFragments bounds the headers of a record: empty fragments would cost nothing otherwise.
	maxFragments = 1 << 10
)

// ErrTooLarge is returned by ReadRecord for a record of more than the permitted size.
// The rest of the record is still on the wire: the connection must be closed.
var ErrTooLarge = errors.New("RPC record is larger than permitted")

// ErrBusy is returned by ReadRecord when the reserve function refuses the memory of a record.
var ErrBusy = errors.New("no memory left for RPC records")

// ReadRecord reads one record of at most limit bytes (RFC 5531 section 11), which may come in
// several fragments. It returns io.EOF when the stream ends before the first byte of a record,
// and io.ErrUnexpectedEOF when it ends within one.
func ReadRecord(r io.Reader, limit int) ([]byte, error) {
	return readRecord(r, limit, func(int) bool { return true })
}

// readRecord calls reserve with the size of each step of growth beyond the first,
// before it allocates it.
func readRecord(r io.Reader, limit int, reserve func(bytes int) bool) ([]byte, error) {
	var record []byte
	for fragments := 0; ; fragments++ {
		if fragments == maxFragments {
			return record, fmt.Errorf("RPC record has more than %d fragments: %w", maxFragments, ErrTooLarge)
		}
		var header [4]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			if err == io.EOF && fragments > 0 {
				err = io.ErrUnexpectedEOF
			}
			return record, err
		}
		word := binary.BigEndian.Uint32(header[:])
		size := int(word &^ lastFragment)
		if size > limit-len(record) {
			return record, fmt.Errorf("fragment of %d bytes after %d, at most %d in total: %w", size, len(record), limit, ErrTooLarge)
		}
		var err error
		if record, err = readFragment(r, record, size, limit, reserve); err != nil {
			return record, err
		}
		if word&lastFragment != 0 {
			return record, nil
		}
	}
}

// readFragment appends size bytes of r to record, growing it as they arrive.
func readFragment(r io.Reader, record []byte, size, limit int, reserve func(int) bool) ([]byte, error) {
	for size > 0 {
		if len(record) == cap(record) {
			grown := max(min(2*cap(record), limit), min(readStep, limit))
			if cap(record) == 0 {
				grown = min(size, readStep)
			}
			if cap(record) > 0 && !reserve(grown-cap(record)) {
				return record, ErrBusy
			}
			larger := make([]byte, len(record), grown)
			copy(larger, record)
			record = larger
		}
		n := min(size, cap(record)-len(record))
		chunk := record[len(record) : len(record)+n]
		if _, err := io.ReadFull(r, chunk); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return record, err
		}
		record = record[:len(record)+n]
		size -= n
	}
	return record, nil
}

// NewRecord starts a record of one fragment in a buffer with the given capacity:
// append the message to it and hand it to FinishRecord.
func NewRecord(capacity int) []byte { return make([]byte, 4, 4+capacity) }

// FinishRecord writes the fragment header into a record started by NewRecord.
func FinishRecord(record []byte) []byte {
	binary.BigEndian.PutUint32(record, lastFragment|uint32(len(record)-4))
	return record
}
