package ceph

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

// A share whose user may use no metadata server gets no answer, and neither does any share while these are away. All other shares wait meanwhile, at a
// start of the pod with their clients. So a pass waits for one share at most, and for the same one only now and then.
const (
	// attributesTimeout limits the wait for one share. It usually takes some 0.1 s; the helper gives up monitors after 10 s.
	attributesTimeout = 15 * time.Second
	// attributesAgain is how often one of the shares without an answer is tried again.
	attributesAgain = time.Minute
)

// silent are shares about which Ceph did not answer.
type silent struct {
	shares map[string]silentShare
	// inPass is the one of this pass; "" if Ceph has always answered. again is the one that is tried again in it.
	inPass, again string
	// last is when Ceph last did not answer.
	last time.Time
}

type silentShare struct {
	// asked is what it was.
	asked attributesOf
	tried time.Time
	err   error
}

// attributesOf is what a share's directory is given.
type attributesOf struct {
	share  share
	wanted exportids.RootAttributes
}

// begin begins a pass. It chooses the share that has waited longest.
func (s *silent) begin(now time.Time) {
	s.inPass, s.again = "", ""
	if now.Sub(s.last) < attributesAgain {
		return
	}
	for name, known := range s.shares {
		if s.again == "" || known.tried.Before(s.shares[s.again].tried) {
			s.again = name
		}
	}
}

// forget drops shares that are not asked for any more.
func (s *silent) forget(asked map[string]bool) {
	maps.DeleteFunc(s.shares, func(name string, _ silentShare) bool { return !asked[name] })
}

// setAttributes gives a share's directory its owner and mode.
func (b *Backend) setAttributes(ctx context.Context, name string, of share, wanted exportids.RootAttributes) error {
	mode, err := strconv.ParseUint(wanted.Mode, 8, 12)
	if err != nil {
		return fmt.Errorf("mode %q: %w", wanted.Mode, err)
	}
	asked := attributesOf{of, wanted}
	before, wasSilent := b.silent.shares[name]
	switch {
	case wasSilent && before.asked == asked && b.silent.again != name:
		return before.err
	case b.silent.inPass != "":
		return fmt.Errorf("no answer of Ceph about share %s in time; this share is next", b.silent.inPass)
	}
	attributes := client.Attributes{UID: wanted.Owner, GID: wanted.Group, Mode: uint32(mode)}
	limited, cancel := context.WithTimeout(ctx, attributesTimeout)
	defer cancel()
	err = b.as(limited, of, "giving the share's directory its owner and mode", func(ctx context.Context, user *client.Client, directory client.Directory) error {
		return user.SetAttributes(ctx, directory, attributes)
	})
	switch {
	case isSilence(err):
		b.silent.shares[name], b.silent.inPass, b.silent.last = silentShare{asked, b.now(), err}, name, b.now()
	case wasSilent:
		clear(b.silent.shares) // The others may have an answer now, too.
	}
	return err
}
