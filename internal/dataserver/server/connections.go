package server

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/howdah/howdah/internal/serverpod"
)

// tcpStates are the states of connections that ganesha counts: TCP_ESTABLISHED and TCP_CLOSE_WAIT of the kernel's
// tcp_states.h.
var tcpStates = map[string]bool{"01": true, "08": true}

// ReadConnections counts the connections of NFS clients in the kernel's tables of the pod's network, which may be its node's.
// Ganesha has the number only in its metrics, which take long to read if there are thousands of connections.
func (g Ganesha) ReadConnections() (total int32, err error) {
	clients, err := g.readClients()
	for _, n := range clients {
		total += int32(n)
	}
	return total, err
}

// readClients counts the connections of each address. It leaves out the pod's own connections over the loopback
// interface: the prober's would change the number in the status all the time.
func (g Ganesha) readClients() (map[string]int, error) {
	clients := map[string]int{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if os.IsNotExist(err) {
			continue // A kernel without IPv6.
		}
		if err != nil {
			return nil, fmt.Errorf("counting connections: %w", err)
		}
		err = countClients(file, uint16(g.Ports.NFS), clients)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("counting the connections in %s: %w", table, err)
		}
	}
	return clients, nil
}

// countClients reads a TCP table of proc(5). Its second column is the local address, the third the remote address, the
// fourth the state.
func countClients(table io.Reader, port uint16, into map[string]int) error {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !tcpStates[fields[3]] {
			continue
		}
		remote, known := remoteAddress(fields[2])
		if known && remote.IsLoopback() {
			continue
		}
		_, portHex, _ := strings.Cut(fields[1], ":")
		if local, err := strconv.ParseUint(portHex, 16, 16); err == nil && uint16(local) == port {
			into[remote.String()]++
		}
	}
	return lines.Err()
}

// remoteAddress parses an address with port of proc(5): words of 32 bits in the machine's byte order.
func remoteAddress(column string) (netip.Addr, bool) {
	text, _, _ := strings.Cut(column, ":")
	words, err := hex.DecodeString(text)
	if err != nil || len(words)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(words); i += 4 {
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(words[i:]))
	}
	address, ok := netip.AddrFromSlice(words)
	return address.Unmap(), ok
}

// answerClients writes the addresses that have connections.
func (g Ganesha) answerClients(writer http.ResponseWriter, _ *http.Request) {
	connections, err := g.readClients()
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(serverpod.NewClients(connections))
}
