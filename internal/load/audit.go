package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
)

// CheckLedgers is an error if ledgers can't be audited together.
func CheckLedgers(ledgers []*Ledger, directories int) error {
	runs := map[string]bool{}
	for _, l := range ledgers {
		if runs[l.Run] {
			return fmt.Errorf("two ledgers are of the run %q", l.Run)
		}
		if len(l.names) > directories {
			return fmt.Errorf("the ledger of the run %q has %d directories: give as many, in the same order", l.Run, len(l.names))
		}
		runs[l.Run] = true
	}
	if len(ledgers) == 0 {
		return errors.New("there is no ledger")
	}
	return nil
}

// Audit compares a directory with what the ledger says of it.
func (p *Place) Audit() {
	l := p.Ledger
	l.mutex.Lock()
	names := map[string]*record{}
	if p.Number < len(l.names) {
		names = maps.Clone(l.names[p.Number])
	}
	l.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if parent, _ := split(name); parent != "" && names[parent] != nil && (names[parent].is == IsGone || names[parent].is == IsUnknown) {
			continue // The directory was renamed.
		}
		p.auditName(name, names[name])
	}
}

func (p *Place) auditName(name string, r *record) {
	switch r.is {
	case IsFile:
		p.auditFile(name, r)
	case IsFolder:
		var listed []string
		lost := false
		done := p.insist(List, name, 0, func() (err error) {
			listed, err = p.FS.Names(name)
			if lost = isErrno(err, syscall.ENOENT); lost {
				return nil
			}
			return err
		})
		switch {
		case lost:
			p.Meter.wrong(LostName, "directory %s is not there", name)
		case done:
			p.compare(name, listed)
		}
	case IsGone, IsWon, IsLost:
		there := false
		if !p.insist(Read, name, 0, func() (err error) {
			there, err = p.FS.Exists(name)
			return err
		}) {
			return
		}
		p.Meter.checked(1)
		switch {
		case r.is == IsGone && there:
			p.Meter.wrong(ExtraName, "%s is there, and was removed", name)
		case r.is != IsGone && !there:
			p.Meter.wrong(LostName, "%s is not there", name)
		}
	}
}

// auditFile accepts the next generation of a block if a write may have been under way when the ledger ended.
func (p *Place) auditFile(name string, r *record) {
	content := make([]byte, BlockSize)
	p.insist(Read, name, 0, func() error {
		opened, err := p.FS.Open(name)
		if isErrno(err, syscall.ENOENT) {
			p.Meter.wrong(LostName, "%s is not there", name)
			return nil
		}
		if err != nil {
			return step("open", err)
		}
		defer func() { _ = opened.Close() }()
		for block, generation := range r.generations {
			if generation == 0 {
				continue
			}
			n, err := opened.ReadBlock(block, content)
			if err != nil {
				return step("read", err)
			}
			if (r.maybe[block] || !p.Ledger.Ended) && p.stamp(r.file, block, generation+1).Differs(content[:n]) == "" {
				p.Meter.checked(1)
				continue
			}
			p.verify(name, p.stamp(r.file, block, generation), content[:n])
		}
		return nil
	})
}

// AuditTogether finds names of a directory that two runs say they made, and with nothingElse names that are in none of the ledgers.
func AuditTogether(ledgers []*Ledger, p *Place, nothingElse bool) {
	winner, known := map[string]string{}, map[string]State{}
	for _, l := range ledgers {
		if p.Number >= len(l.names) {
			continue
		}
		for name, state := range l.inFolder(p.Number, "") {
			if state == IsWon {
				if other := winner[name]; other != "" {
					p.Meter.wrong(ExtraName, "%s was made by both %s and %s", name, other, l.Run)
				}
				winner[name] = l.Run
			}
			if known[name] == "" || known[name] == IsGone {
				known[name] = state
			}
		}
	}
	if !nothingElse {
		return
	}
	var names []string
	if p.insist(List, ".", 0, func() (err error) {
		names, err = p.FS.Names("")
		return err
	}) {
		_, extra, _ := Compare(known, names)
		for _, name := range extra {
			p.Meter.wrong(ExtraName, "%s is there, and is in none of the ledgers", name)
		}
	}
}
