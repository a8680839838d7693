package ceph

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// An entry of the answer to Blocklisted. The answer has an array for addresses and one for ranges, one after the other, which is no
// JSON document.
var blocklistEntry = regexp.MustCompile(`"addr":\s*"([^"]+)",\s*"until":\s*"([^"]+)"`)

// ParseBlocklist returns until when each single address is blocked. Ranges are left out.
func ParseBlocklist(answer string) (map[string]time.Time, error) {
	until := map[string]time.Time{}
	for _, entry := range blocklistEntry.FindAllStringSubmatch(answer, -1) {
		end, err := time.Parse("2006-01-02T15:04:05.999999-0700", entry[2])
		if err != nil {
			return nil, fmt.Errorf("reading Ceph's blocklist: address %s: %w", entry[1], err)
		}
		until[entry[1]] = end
	}
	return until, nil
}

// Host returns the part of a client's address that all clients of a pod share: without port and nonce.
func Host(address string) string {
	at := strings.LastIndexByte(address, ':')
	if at < 0 {
		return address
	}
	return address[:at]
}

// IsOneClient reports whether an address has a nonce, and so means one client and not all of a host.
func IsOneClient(address string) bool {
	_, nonce, found := strings.Cut(address, "/")
	return found && nonce != "" && nonce != "0"
}
