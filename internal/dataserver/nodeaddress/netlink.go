package nodeaddress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Flags of addresses (linux/if_addr.h). IFA_F_SECONDARY of IPv4 and IFA_F_TEMPORARY of IPv6 have one bit.
const (
	flagSecondary  = 0x01
	flagOptimistic = 0x04
	flagDADFailed  = 0x08
	flagDeprecated = 0x20
	flagTentative  = 0x40
)

// lengthOfHeader is that of struct ifaddrmsg: family, length of the network, flags, scope, and the index of the interface.
const lengthOfHeader = 8

// Read returns all addresses of this process's network namespace. Go's net package has them without their flags.
func Read() ([]Address, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("listing the network interfaces: %w", err)
	}
	named := map[int]net.Interface{}
	for _, i := range interfaces {
		named[i.Index] = i
	}
	table, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("listing the addresses of the network interfaces: %w", err)
	}
	return parse(table, named)
}

// parse reads the kernel's answer to RTM_GETADDR. Addresses of an interface that is not known came after the list of interfaces.
func parse(table []byte, interfaces map[int]net.Interface) (all []Address, err error) {
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of the network interfaces: %w", err)
	}
	for i := range messages {
		if messages[i].Header.Type != syscall.RTM_NEWADDR {
			continue
		}
		if len(messages[i].Data) < lengthOfHeader {
			return nil, errors.New("reading the addresses of the network interfaces: a message is too short")
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("reading the attributes of an address: %w", err)
		}
		of, isKnown := interfaces[int(binary.NativeEndian.Uint32(messages[i].Data[4:lengthOfHeader]))]
		address := addressOf(attributes)
		if !isKnown || !address.IsValid() {
			continue
		}
		flags := messages[i].Data[2]
		all = append(all, Address{
			Prefix: netip.PrefixFrom(address, int(messages[i].Data[1])), Interface: of.Name,
			Up: of.Flags&net.FlagUp != 0, Running: of.Flags&net.FlagRunning != 0,
			Unproven:  flags&(flagTentative|flagDADFailed|flagOptimistic) != 0,
			Secondary: flags&flagSecondary != 0, Deprecated: flags&flagDeprecated != 0,
		})
	}
	return all, nil
}

// addressOf is the interface's own address: IFA_LOCAL, which IPv6 has only where IFA_ADDRESS is that of the other end.
func addressOf(attributes []syscall.NetlinkRouteAttr) (address netip.Addr) {
	for _, attribute := range attributes {
		own, is := netip.AddrFromSlice(attribute.Value)
		switch {
		case !is:
		case attribute.Attr.Type == syscall.IFA_LOCAL:
			return own
		case attribute.Attr.Type == syscall.IFA_ADDRESS:
			address = own
		}
	}
	return address
}
