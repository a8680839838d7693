package guest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/howdah/howdah/hack/lab/internal/plan"
)

const (
	uplinkEvery = 5 * time.Second
	// unreachableMost is how often in a row the host may not be found before the card is opened again. A host that refuses or is silent is found.
	unreachableMost = 3
)

// keepUplink opens the network card again when it has stopped. The driver of User-mode Linux (vector_kern.c) stops reading for good at the first error of
// the host's device: a node was lost in the middle of a test once. To see it: ip link set tap1 down, and up, in the lab's network namespace.
func keepUplink(config Config) {
	unreachable := 0
	for ; ; time.Sleep(uplinkEvery) {
		if unreachable = nextUnreachable(unreachable, findHost(config.Family.APIServerIP())); unreachable < unreachableMost {
			continue
		}
		say("the host was not found %d times in a row: opening %s again", unreachable, uplink)
		unreachable = 0
		if err := run("ip", "link", "set", uplink, "down"); err != nil {
			say("%s: %v", uplink, err)
		}
		if err := setUpNetwork(config); err != nil {
			say("%s: %v", uplink, err)
		}
	}
}

// findHost is an error of syscall.EHOSTUNREACH if nothing on the lab's network has the host's address.
func findHost(address string) error {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(address, strconv.Itoa(plan.APIServerPort)), uplinkEvery)
	if err == nil {
		_ = connection.Close()
	}
	return err
}

// nextUnreachable counts how often in a row the host was not found.
func nextUnreachable(before int, err error) int {
	if errors.Is(err, syscall.EHOSTUNREACH) {
		return before + 1
	}
	return 0
}
