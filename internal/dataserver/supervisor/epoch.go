package supervisor

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
)

func randomEpoch() (string, error) {
	var bytes [4]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		return "", fmt.Errorf("choosing ganesha's epoch: %w", err)
	}
	// 0 would mean "not given".
	return strconv.FormatUint(uint64(max(binary.NativeEndian.Uint32(bytes[:]), 1)), 10), nil
}
