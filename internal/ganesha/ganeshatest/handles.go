package ganeshatest

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Bytes of a handle that ganesha has signed (internal/ganesha/build/patches/0400-signed-handles.patch): flags, the length of what
// follows the head, and at the end the MAC.
const (
	flagsAt, lengthAt = 1, 4
	flagSigned        = 2
	macBytes          = 8
)

// SignHandle signs a handle as ganesha itself makes it, of an export whose Export_Id was used by that many others before. It is
// written independently, so that a test that compares finds mistakes of either.
func SignHandle(key [16]byte, bare []byte, round uint16) []byte {
	handle := slices.Clone(bare)
	handle[flagsAt] |= flagSigned
	handle[lengthAt] += macBytes
	message := slices.Clone(handle)
	if round > 0 {
		message = binary.LittleEndian.AppendUint16(message, round)
	}
	return binary.LittleEndian.AppendUint64(handle, SIPHash(key, message))
}

// BareHandle is what SignHandle was given.
func BareHandle(signed []byte) []byte {
	handle := slices.Clone(signed[:len(signed)-macBytes])
	handle[flagsAt] &^= flagSigned
	handle[lengthAt] -= macBytes
	return handle
}

// SIPHash is SipHash-2-4 with 64 bits of output (Aumasson and Bernstein, 2012).
func SIPHash(key [16]byte, message []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	padded := append(slices.Clone(message), make([]byte, 8-len(message)%8)...)
	padded[len(padded)-1] = byte(len(message))
	for word := range slices.Chunk(padded, 8) {
		m := binary.LittleEndian.Uint64(word)
		v[3] ^= m
		sipRounds(&v, 2)
		v[0] ^= m
	}
	v[2] ^= 0xff
	sipRounds(&v, 4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipRounds(v *[4]uint64, rounds int) {
	for range rounds {
		v[0] += v[1]
		v[2] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 13)^v[0], bits.RotateLeft64(v[3], 16)^v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 17)^v[2], bits.RotateLeft64(v[3], 21)^v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
}
