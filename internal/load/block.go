package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// BlockSize is the size of every block that the load writes, in bytes.
const BlockSize = 8 << 10

const (
	magic = "HOWDAHL1"
	// MaxName is the longest name of a run, in bytes. Each block has it.
	MaxName = 63
	// headerSize is a multiple of 8. The header has: magic, seed, file, block, generation, checksum, reserved, name of the run.
	headerSize   = 8 + 8 + 8 + 4 + 4 + 4 + 4 + MaxName + 1
	checksumAt   = 8 + 8 + 8 + 4 + 4
	nameAt       = checksumAt + 8
	checksumSize = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Stamp identifies the content of a block: which run wrote it, into which block of which file, for the how manieth time.
type Stamp struct {
	Run        string
	Seed, File uint64
	Block      int
	Generation uint32
}

// Fill writes the block of this stamp into p, which is BlockSize long.
func (s Stamp) Fill(p []byte) {
	clear(p[:headerSize])
	copy(p, magic)
	binary.LittleEndian.PutUint64(p[8:], s.Seed)
	binary.LittleEndian.PutUint64(p[16:], s.File)
	binary.LittleEndian.PutUint32(p[24:], uint32(s.Block))
	binary.LittleEndian.PutUint32(p[28:], s.Generation)
	copy(p[nameAt:nameAt+MaxName], s.Run)
	random := mix(mix(mix(s.Seed)^s.File) ^ uint64(s.Block)<<32 ^ uint64(s.Generation))
	for at := headerSize; at < BlockSize; at += 8 {
		random += 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(p[at:], mix(random))
	}
	binary.LittleEndian.PutUint32(p[checksumAt:], checksum(p))
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func checksum(p []byte) uint32 {
	sum := crc32.Update(0, castagnoli, p[:checksumAt])
	return crc32.Update(sum, castagnoli, p[checksumAt+checksumSize:])
}

// ReadStamp is the stamp of a block; false if it is not an intact block of a load.
func ReadStamp(p []byte) (Stamp, bool) {
	if len(p) != BlockSize || string(p[:8]) != magic || binary.LittleEndian.Uint32(p[checksumAt:]) != checksum(p) {
		return Stamp{}, false
	}
	name, _, _ := bytes.Cut(p[nameAt:nameAt+MaxName+1], []byte{0})
	return Stamp{
		Run: string(name), Seed: binary.LittleEndian.Uint64(p[8:]), File: binary.LittleEndian.Uint64(p[16:]),
		Block: int(binary.LittleEndian.Uint32(p[24:])), Generation: binary.LittleEndian.Uint32(p[28:]),
	}, true
}

// Differs describes how a block that was read differs from the one that was written; "" if it does not.
func (s Stamp) Differs(p []byte) string {
	var want [BlockSize]byte
	s.Fill(want[:])
	if bytes.Equal(p, want[:]) {
		return ""
	}
	found, intact := ReadStamp(p)
	switch {
	case len(p) < BlockSize:
		return fmt.Sprintf("only %d of %d bytes are there", len(p), BlockSize)
	case isZero(p):
		return "it has only zeros"
	case !intact:
		first, count := 0, 0
		for i := range want {
			if p[i] != want[i] {
				if count == 0 {
					first = i
				}
				count++
			}
		}
		return fmt.Sprintf("%d bytes are wrong, the first at offset %d of the block", count, first)
	case found.Seed != s.Seed:
		return fmt.Sprintf("it has a block of the run %q", found.Run)
	case found.File != s.File || found.Block != s.Block:
		return fmt.Sprintf("it has block %d of file number %d", found.Block, found.File)
	}
	return fmt.Sprintf("it has write number %d of this block instead of number %d", found.Generation, s.Generation)
}

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}
