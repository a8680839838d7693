package ganesha

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"unicode/utf8"
)

// Lengths that ganesha's own limits allow (MAXPATHLEN, NFS4_OPAQUE_LIMIT), in bytes.
const (
	maxPath     = 4096
	maxIdentity = 1024
	maxCephUser = 64 // MAXUSERIDLEN of FSAL_CEPH, less its end
)

// check tells everything that is wrong with the model.
func (c Config) check() error {
	faults := []error{
		checkText("Server_Scope", c.ServerScope, maxIdentity),
		checkText("Server_Owner", c.ServerOwner, maxIdentity),
		c.checkRecovery(),
	}
	if c.LeaseSeconds < 1 || c.LeaseSeconds > 120 {
		faults = append(faults, fmt.Errorf("Lease_Lifetime %d is not 1 to 120 seconds", c.LeaseSeconds))
	}
	if c.GraceSeconds < c.LeaseSeconds || c.GraceSeconds > 180 {
		faults = append(faults, fmt.Errorf("Grace_Period %d is not %d (the lease) to 180 seconds", c.GraceSeconds, c.LeaseSeconds))
	}
	for _, network := range c.CountedAlone {
		if !network.IsValid() {
			faults = append(faults, errors.New("Counted_Alone has a network that is not valid"))
		}
	}
	ids, pseudos := map[uint16]bool{}, map[string]bool{}
	paths := map[string]string{}
	for _, export := range c.Exports {
		if fs := export.CephFS; fs != nil {
			if c.Ceph == nil {
				faults = append(faults, fmt.Errorf("export %d is in CephFS, and the configuration names no Ceph cluster", export.ID))
			}
			if other, used := paths[fs.User]; used {
				faults = append(faults, fmt.Errorf("Ceph user %q has the exports %s and %s: give each its own, or clients of one can reach the other",
					fs.User, other, export.Path))
			}
			paths[fs.User] = export.Path
		}
		if ids[export.ID] {
			faults = append(faults, fmt.Errorf("Export_Id %d is used twice", export.ID))
		}
		if pseudos[export.Pseudo] {
			faults = append(faults, fmt.Errorf("pseudo path %q is used twice", export.Pseudo))
		}
		ids[export.ID], pseudos[export.Pseudo] = true, true
		if err := export.check(); err != nil {
			faults = append(faults, fmt.Errorf("export %d: %w", export.ID, err))
		}
	}
	return errors.Join(faults...)
}

func (c Config) checkRecovery() error {
	if c.Ceph == nil {
		return checkPath("RecoveryRoot", c.RecoveryRoot)
	}
	if c.RecoveryRoot != "" {
		return errors.New("clients are remembered in Ceph, and RecoveryRoot is set, too")
	}
	return errors.Join(
		checkPath("ceph_conf", c.Ceph.ConfigFile),
		checkText("userid", c.Ceph.RecoveryUser, maxCephUser),
		checkText("pool", c.Ceph.RecoveryPool, maxIdentity),
		checkText("namespace", c.Ceph.RecoveryNamespace, maxIdentity),
		checkText("nodeid", c.Ceph.NodeID, maxIdentity),
	)
}

func (e Export) check() error {
	faults := []error{checkPath("Pseudo", e.Pseudo)}
	if !e.Awaited {
		faults = append(faults, checkPath("Path", e.Path))
	}
	if e.CephFS != nil {
		faults = append(faults, checkText("Filesystem", e.CephFS.FileSystem, maxIdentity), checkText("User_Id", e.CephFS.User, maxCephUser))
	}
	if e.ID == 0 {
		faults = append(faults, errors.New("Export_Id 0 is ganesha's pseudo root"))
	}
	if e.Pseudo == "/" {
		faults = append(faults, errors.New("pseudo path / is ganesha's pseudo root"))
	}
	for i, client := range e.Clients {
		if err := client.check(); err != nil {
			faults = append(faults, fmt.Errorf("client rule %d: %w", i, err))
		}
	}
	return errors.Join(faults...)
}

// CheckCephFS tells why no export can be of a directory in CephFS, with a user. Render refuses a whole configuration for one of them.
func CheckCephFS(directory, user string) error {
	return errors.Join(checkPath("Path", directory), checkText("User_Id", user, maxCephUser))
}

func (c Client) check() error {
	var faults []error
	if len(c.Addresses) == 0 {
		// Ganesha reads a CLIENT block without Clients as one for everybody.
		faults = append(faults, errors.New("no addresses"))
	}
	for _, prefix := range c.Addresses {
		if !prefix.IsValid() {
			faults = append(faults, errors.New("an address that is not valid"))
		}
	}
	switch c.Access {
	case ReadWrite, ReadOnly, AccessNone:
	default:
		faults = append(faults, fmt.Errorf("Access_Type %q is not known", string(c.Access)))
	}
	switch c.Squash {
	case SquashNone, SquashRoot, SquashAll:
	default:
		faults = append(faults, fmt.Errorf("Squash %q is not known", string(c.Squash)))
	}
	return errors.Join(faults...)
}

// checkText refuses what could end a quoted string of ganesha's. Its lexer takes the
// longest match, so even an escaped backslash before the closing quote runs on to
// the next one; control characters and invalid UTF-8 have no place in any value of ours.
func checkText(option, value string, limit int) error {
	switch {
	case value == "":
		return fmt.Errorf("%s is empty", option)
	case len(value) > limit:
		return fmt.Errorf("%s is longer than %d bytes", option, limit)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s is not UTF-8: %q", option, value)
	}
	for _, char := range value {
		if char < 0x20 || (char >= 0x7f && char < 0xa0) || char == '"' || char == '\\' {
			return fmt.Errorf("%s has the character %q, which ganesha.conf can't carry safely", option, char)
		}
	}
	return nil
}

func checkPath(option, value string) error {
	if err := checkText(option, value, maxPath); err != nil {
		return err
	}
	if !strings.HasPrefix(value, "/") || path.Clean(value) != value {
		return fmt.Errorf("%s %q is not a clean absolute path", option, value)
	}
	return nil
}

// ParseAddress reads an address or a prefix as the API has it, in the form that ganesha compares.
func ParseAddress(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		if address.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("address %q has a zone, which means nothing on another machine", text)
		}
		return canonical(netip.PrefixFrom(address, address.BitLen())), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an IP address nor a CIDR: %w", text, err)
	}
	return canonical(prefix), nil
}

// canonical drops host bits, and makes IPv4-mapped IPv6 prefixes IPv4 ones.
func canonical(prefix netip.Prefix) netip.Prefix {
	if address := prefix.Addr(); address.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(address.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked()
}
