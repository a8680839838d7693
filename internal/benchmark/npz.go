package benchmark

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// What numpy.savez writes: a ZIP file with the stored members x.npy and y.npy,
// each with the extra field of ZIP64 in its local header (force_zip64).
// PKWARE APPNOTE 4.3.7, 4.3.12 and 4.3.16; NEP 1 for the npy format.
const (
	zipLocalHeader   = 0x04034b50
	zipCentralHeader = 0x02014b50
	zipEndOfCentral  = 0x06054b50
	zipVersion64     = 45
	zipDate1980      = 0x21
	endOfCentralSize = 22
	zip64ExtraID     = 1
	zip64ExtraSize   = 16
	zipSizeInExtra   = 0xffffffff
	// zipFileMode is the permission 0600 of a member, as Python's zipfile sets it.
	zipFileMode = 0o600 << 16
	// npyAlignment is the multiple that npy headers are padded to (numpy.lib.format.ARRAY_ALIGN).
	npyAlignment = 64
)

// The members of a sample: the array and its label.
const (
	xName = "x.npy"
	yName = "y.npy"
)

// NPZHeaderSize is the largest number of bytes before the array of a sample.
const NPZHeaderSize = 256

// npyHeader is the header of an npy file, version 1.0.
func npyHeader(descr, shape string) []byte {
	const magic = "\x93NUMPY\x01\x00"
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	length := len(magic) + 2 + len(dict) + 1
	padding := (npyAlignment - length%npyAlignment) % npyAlignment
	text := dict + strings.Repeat(" ", padding) + "\n"
	header := binary.LittleEndian.AppendUint16([]byte(magic), uint16(len(text)))
	return append(header, text...)
}

func xHeader(s Shape) []byte { return npyHeader("|u1", fmt.Sprintf("(%d, %d, 1)", s.Rows, s.Columns)) }

// yMember is the label of a sample: numpy.array([0]).
func yMember() []byte { return append(npyHeader("<i8", "(1,)"), make([]byte, 8)...) }

// member is a stored member of a ZIP file.
type member struct {
	name   string
	crc    uint32
	size   uint64
	offset uint32
}

func (m member) local() []byte {
	var b []byte
	le := binary.LittleEndian
	b = le.AppendUint32(b, zipLocalHeader)
	b = le.AppendUint16(b, zipVersion64)
	b = append(b, 0, 0, 0, 0, 0, 0) // flags, method (stored), time
	b = le.AppendUint16(b, zipDate1980)
	b = le.AppendUint32(b, m.crc)
	b = le.AppendUint32(b, zipSizeInExtra)
	b = le.AppendUint32(b, zipSizeInExtra)
	b = le.AppendUint16(b, uint16(len(m.name)))
	b = le.AppendUint16(b, 4+zip64ExtraSize)
	b = append(b, m.name...)
	b = le.AppendUint16(b, zip64ExtraID)
	b = le.AppendUint16(b, zip64ExtraSize)
	b = le.AppendUint64(b, m.size)
	return le.AppendUint64(b, m.size)
}

func (m member) central() []byte {
	var b []byte
	le := binary.LittleEndian
	b = le.AppendUint32(b, zipCentralHeader)
	b = append(b, zipVersion64, 3) // made by: version 4.5, Unix
	b = le.AppendUint16(b, zipVersion64)
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint16(b, zipDate1980)
	b = le.AppendUint32(b, m.crc)
	b = le.AppendUint32(b, uint32(m.size))
	b = le.AppendUint32(b, uint32(m.size))
	b = le.AppendUint16(b, uint16(len(m.name)))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // extra, comment, disk, internal attributes
	b = le.AppendUint32(b, zipFileMode)
	b = le.AppendUint32(b, m.offset)
	return append(b, m.name...)
}

// NPZHead is what comes before the array of a sample. payloadCRC is the CRC-32 (IEEE) of the array.
func NPZHead(s Shape, payloadCRC uint32) []byte {
	return append(xMember(s, payloadCRC).local(), xHeader(s)...)
}

// NPZTail is what comes after the array of a sample.
func NPZTail(s Shape, payloadCRC uint32) []byte {
	x := xMember(s, payloadCRC)
	label := yMember()
	y := member{
		name: yName, crc: crc32.ChecksumIEEE(label), size: uint64(len(label)),
		offset: uint32(uint64(len(x.local())) + x.size),
	}
	directory := append(x.central(), y.central()...)
	tail := append(y.local(), label...)
	start := uint64(y.offset) + uint64(len(tail))
	tail = append(tail, directory...)
	le := binary.LittleEndian
	tail = le.AppendUint32(tail, zipEndOfCentral)
	tail = append(tail, 0, 0, 0, 0)
	tail = le.AppendUint16(tail, 2)
	tail = le.AppendUint16(tail, 2)
	tail = le.AppendUint32(tail, uint32(len(directory)))
	tail = le.AppendUint32(tail, uint32(start))
	return append(tail, 0, 0)
}

func xMember(s Shape, payloadCRC uint32) member {
	header := xHeader(s)
	return member{
		name: xName, size: uint64(len(header)) + uint64(s.Bytes()),
		crc: crc32Combine(crc32.ChecksumIEEE(header), payloadCRC, s.Bytes()),
	}
}

// npzOverhead is the number of bytes beside the array. It computes no checksum, because it is called for every file of a dataset.
func npzOverhead(s Shape) int64 {
	x, y := member{name: xName}, member{name: yName}
	directory := len(x.central()) + len(y.central()) + endOfCentralSize
	return int64(len(x.local()) + len(xHeader(s)) + len(y.local()) + len(yMember()) + directory)
}

// errNotSample: the first bytes of a file are not those of a sample of the expected shape.
var errNotSample = errors.New("the file is not a sample of this dataset; delete it, or the folder, and generate the dataset again")

// CheckNPZHead checks that head, the first NPZHeaderSize bytes of a file, belongs to a sample of the given shape. It ignores the checksum.
func CheckNPZHead(head []byte, s Shape) error {
	header := xHeader(s)
	x := member{name: xName, size: uint64(len(header)) + uint64(s.Bytes())} // without the checksum
	want := append(x.local(), header...)
	const crcAt, crcEnd = 14, 18
	if len(head) < len(want) || !bytes.Equal(head[:crcAt], want[:crcAt]) || !bytes.Equal(head[crcEnd:len(want)], want[crcEnd:]) {
		return errNotSample
	}
	return nil
}

// crc32Combine is the CRC-32 of two strings one after the other, from those of
// each and the length of the second: appending n zero bytes to the first is a linear map, found by squaring
// (the method of zlib's crc32_combine). With it the header, which has the sum, need not be known before the data.
func crc32Combine(first, second uint32, secondBytes int64) uint32 {
	var operator [32]uint32 // one zero bit
	operator[0] = crc32.IEEE
	for i := 1; i < 32; i++ {
		operator[i] = 1 << (i - 1)
	}
	for range 3 { // eight zero bits: one zero byte
		operator = square(operator)
	}
	for n := secondBytes; n > 0; n >>= 1 {
		if n&1 != 0 {
			first = times(operator, first)
		}
		operator = square(operator)
	}
	return first ^ second
}

func times(matrix [32]uint32, vector uint32) uint32 {
	sum := uint32(0)
	for i := 0; vector != 0; i, vector = i+1, vector>>1 {
		if vector&1 != 0 {
			sum ^= matrix[i]
		}
	}
	return sum
}

func square(matrix [32]uint32) [32]uint32 {
	var result [32]uint32
	for i := range matrix {
		result[i] = times(matrix, matrix[i])
	}
	return result
}
