// Package freeport finds TCP addresses for servers that a test starts and that listen by themselves.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The kernel gives ports from 32768 on to connections (net.ipv4.ip_local_port_range), so one below stays free until the server listens,
// however many connections others make meanwhile. Below 10000 are services.
const first, end = 10_000, 32_768

var (
	mutex sync.Mutex
	given = map[int]bool{}
)

// Address is an address of the loopback interface at which nothing listens. It is given once.
func Address() (string, error) {
	mutex.Lock()
	defer mutex.Unlock()
	var last error
	for range 1000 {
		port := first + rand.IntN(end-first) //nolint:gosec // no secret
		if given[port] {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if last = errors.Join(err, release(listener)); last != nil {
			continue
		}
		given[port] = true
		return address, nil
	}
	return "", fmt.Errorf("no port from %d to %d is free: %w", first, end-1, last)
}

func release(listener net.Listener) error {
	if listener == nil {
		return nil
	}
	return listener.Close()
}
