package server

import (
	"encoding/binary"
	"maps"
	"strings"
	"testing"
)

// tcpTable and tcp6Table are what proc(5) has on machines with the low byte first, which all are that Howdah is built
// for.
const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 100 0 0 10 0
   1: 0200630A:0801 0100630A:C350 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0000000000000000 100 0 0 10 0
   2: 0200630A:0801 0200007E:C350 08 00000000:00000000 00:00000000 00000000     0        0 13 1 0000000000000000 100 0 0 10 0
   3: 0200630A:0801 0300630A:C350 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 100 0 0 10 0
   4: 0100007F:0801 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 14 1 0000000000000000 100 0 0 10 0
   5: 0100007F:0801 4D03427F:0351 01 00000000:00000000 00:00000000 00000000     0        0 15 1 0000000000000000 100 0 0 10 0
   6: 0100630A:C350 0200630A:0801 01 00000000:00000000 00:00000000 00000000     0        0 16 1 0000000000000000 100 0 0 10 0
   7: 0200630A:2574 0100630A:C351 01 00000000:00000000 00:00000000 00000000     0        0 17 1 0000000000000000 100 0 0 10 0
`

const tcp6Table = `  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000200630A:0801 0000000000000000FFFF00000100630A:C350 01
   1: 000000FD000000000000000001000000:0801 000000FD000000000000000002000000:C350 01
   2: 0000000000000000FFFF00000100007F:0801 0000000000000000FFFF00000100007F:C350 01
   3: 00000000000000000000000001000000:0801 00000000000000000000000001000000:C350 01
`

func TestConnectionsAreThoseOfClientsThatAreOpen(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the tables are of a machine with the low byte first")
	}
	for table, want := range map[string]map[string]int{
		tcpTable:  {"10.99.0.1": 1, "126.0.0.2": 1},
		tcp6Table: {"10.99.0.1": 1, "fd00::2": 1},
	} {
		got := map[string]int{}
		if err := countClients(strings.NewReader(table), 2049, got); err != nil || !maps.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}
