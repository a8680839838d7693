package model

import (
	"fmt"
	"strings"

	"github.com/howdah/howdah/test/verdict"
)

// What the paper calculation is about: servers whose links no machine of ours has.
const (
	paperServers = 5
	// paperLink is 100 Gbit/s in bytes per second.
	paperLink = 100e9 / 8
	// paperPayload is the part of it that is file data with packets of 9,000 bytes, of which 8,948 are: 9,038 with Ethernet's own.
	paperPayload = 0.99
)

// paper says what five servers with 100 GbE would give and need, if they are to such links as this run's are to its own.
func (r *Run) paper() string {
	link, all := r.of(RawTCP, 1).Median(), r.of(Reads, r.Servers)
	if link == 0 || len(all.CPU) == 0 {
		return ""
	}
	part := all.Median() / (float64(r.Servers) * link)
	cores := verdict.Median(all.CPU) // CPU seconds per GB are cores for 1 GB/s.
	each := paperLink * paperPayload * part / 1e9
	var text strings.Builder
	fmt.Fprintf(&text, "On paper, %d servers with 100 GbE: %.1f GB/s (%.1f each), %.1f cores of each for NFS\n",
		paperServers, paperServers*each, each, cores*each)
	for _, assumed := range []string{
		fmt.Sprintf("%.2f CPU seconds for each GB read, as here, at any rate: data is in the page cache, and packets of 1,500 bytes", cores),
		fmt.Sprintf("the part %.3f of the links' data that this run got; %.2f of a link is data with packets of 9,000 bytes", part, paperPayload),
		"disks as fast as the links, clients that take it all (one with 100 GbE: one server's part), and no lock that 16 connections do not show",
	} {
		fmt.Fprintf(&text, "  assumed: %s\n", assumed)
	}
	return text.String()
}
