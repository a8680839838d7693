package nodeaddress

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

// message is one of the kernel's answers: struct nlmsghdr, struct ifaddrmsg and attributes.
func message(kind uint16, family, bits, flags byte, index uint32, attributes ...any) []byte {
	data := append([]byte{family, bits, flags, 0}, binary.NativeEndian.AppendUint32(nil, index)...)
	for i := 0; i < len(attributes); i += 2 {
		value := netip.MustParseAddr(attributes[i+1].(string)).AsSlice()
		data = binary.NativeEndian.AppendUint16(data, uint16(4+len(value)))
		data = binary.NativeEndian.AppendUint16(data, uint16(attributes[i].(int)))
		data = append(data, value...)
	}
	header := binary.NativeEndian.AppendUint32(nil, uint32(syscall.SizeofNlMsghdr+len(data)))
	header = binary.NativeEndian.AppendUint16(header, kind)
	return append(append(header, make([]byte, 10)...), data...)
}

func TestTheKernelsAddressesAreReadWithTheirFlags(t *testing.T) {
	interfaces := map[int]net.Interface{
		2: {Index: 2, Name: "eth0", Flags: net.FlagUp | net.FlagRunning},
		3: {Index: 3, Name: "wg0", Flags: net.FlagUp},
		4: {Index: 4, Name: "eth1"},
	}
	table := slices.Concat(
		message(syscall.RTM_NEWADDR, syscall.AF_INET, 16, 0x80, 2, syscall.IFA_ADDRESS, "10.20.0.11", syscall.IFA_LOCAL, "10.20.0.11"),
		message(syscall.RTM_NEWADDR, syscall.AF_INET, 16, 0x81, 2, syscall.IFA_ADDRESS, "10.20.0.12", syscall.IFA_LOCAL, "10.20.0.12"),
		// The address of the other end comes first.
		message(syscall.RTM_NEWADDR, syscall.AF_INET, 32, 0x80, 3, syscall.IFA_ADDRESS, "10.9.0.2", syscall.IFA_LOCAL, "10.9.0.1"),
		message(syscall.RTM_NEWADDR, syscall.AF_INET6, 64, 0x40, 4, syscall.IFA_ADDRESS, "fd00:20::11"),
		message(syscall.RTM_NEWADDR, syscall.AF_INET6, 64, 0x20, 2, syscall.IFA_ADDRESS, "fd00:20::12"),
		message(syscall.RTM_NEWADDR, syscall.AF_INET6, 64, 0x08, 2, syscall.IFA_ADDRESS, "fd00:20::13"),
		message(syscall.RTM_NEWADDR, syscall.AF_INET, 16, 0, 9, syscall.IFA_LOCAL, "10.20.0.19"), // Its interface came later.
		message(syscall.RTM_NEWADDR, syscall.AF_INET, 16, 0, 2),                                  // None.
		message(syscall.NLMSG_DONE, 0, 0, 0, 0),
	)
	want := []Address{
		{Prefix: netip.MustParsePrefix("10.20.0.11/16"), Interface: "eth0", Up: true, Running: true},
		{Prefix: netip.MustParsePrefix("10.20.0.12/16"), Interface: "eth0", Up: true, Running: true, Secondary: true},
		{Prefix: netip.MustParsePrefix("10.9.0.1/32"), Interface: "wg0", Up: true},
		{Prefix: netip.MustParsePrefix("fd00:20::11/64"), Interface: "eth1", Unproven: true},
		{Prefix: netip.MustParsePrefix("fd00:20::12/64"), Interface: "eth0", Up: true, Running: true, Deprecated: true},
		{Prefix: netip.MustParsePrefix("fd00:20::13/64"), Interface: "eth0", Up: true, Running: true, Unproven: true},
	}
	got, err := parse(table, interfaces)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if _, err := parse(table[:20], interfaces); err == nil {
		t.Error("half a message is read")
	}
	short := binary.NativeEndian.AppendUint32(nil, syscall.SizeofNlMsghdr+4)
	short = binary.NativeEndian.AppendUint16(short, syscall.RTM_NEWADDR)
	if _, err := parse(append(short, make([]byte, 14)...), interfaces); err == nil {
		t.Error("a message without an index is read")
	}
}

func TestThisMachineHasItsLoopbackAddress(t *testing.T) {
	all, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(a Address) bool {
		return a.Prefix == netip.MustParsePrefix("127.0.0.1/8") && a.Up && a.Interface != ""
	}) {
		t.Errorf("%+v", all)
	}
}
