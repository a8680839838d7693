package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel's generic netlink family of NBD (include/uapi/linux/nbd-netlink.h). With it a device needs no process that stays, so a
// restart of this one takes no volume away. User-mode Linux has NBD in its defconfig.
const (
	nbdFamily = "nbd"

	nbdConnect    = 1
	nbdDisconnect = 2

	attrIndex   = 1
	attrSize    = 2
	attrBlock   = 3
	attrTimeout = 4
	attrFlags   = 5
	attrSockets = 7
	attrBackend = 10

	sockItem = 1
	sockFD   = 1

	// nlaTypeMask takes the flags off the kind of an attribute (NLA_TYPE_MASK).
	nlaTypeMask = 0x3fff

	blockSize      = 4096
	requestTimeout = 30
)

// attribute is one of netlink's, with its length and padding.
func attribute(kind uint16, value []byte) []byte {
	a := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	a = binary.NativeEndian.AppendUint16(a, kind)
	a = append(a, value...)
	for len(a)%unix.NLA_ALIGNTO != 0 {
		a = append(a, 0)
	}
	return a
}

func number(kind uint16, value uint64) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint64(nil, value))
}

func short(kind uint16, value uint32) []byte {
	return attribute(kind, binary.NativeEndian.AppendUint32(nil, value))
}

// netlink sends one message of a family, and returns what the first answer has after its generic header.
func netlink(family uint16, command uint8, attributes []byte) ([]byte, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(socket) }()
	length := unix.SizeofNlMsghdr + unix.GENL_HDRLEN + len(attributes)
	message := binary.NativeEndian.AppendUint32(nil, uint32(length))
	message = binary.NativeEndian.AppendUint16(message, family)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	message = append(message, 0, 0, 0, 0, 0, 0, 0, 0) // Sequence and port.
	message = append(message, command, 1, 0, 0)
	if err := unix.Sendto(socket, append(message, attributes...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	buffer := make([]byte, 1<<16)
	var payload []byte
	for {
		n, _, err := unix.Recvfrom(socket, buffer, 0)
		if err != nil {
			return nil, err
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofNlMsghdr; {
			size := int(binary.NativeEndian.Uint32(rest))
			if size < unix.SizeofNlMsghdr || size > len(rest) {
				return nil, errors.New("a message of netlink that is cut off")
			}
			body := rest[unix.SizeofNlMsghdr:size]
			if binary.NativeEndian.Uint16(rest[4:]) == unix.NLMSG_ERROR {
				if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
					return nil, unix.Errno(-code)
				}
				return payload, nil
			}
			if len(body) >= unix.GENL_HDRLEN {
				payload = append([]byte(nil), body[unix.GENL_HDRLEN:]...)
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}

// find is the value of an attribute, nil if there is none.
func find(attributes []byte, kind uint16) []byte {
	for len(attributes) >= unix.SizeofNlAttr {
		length := int(binary.NativeEndian.Uint16(attributes))
		if length < unix.SizeofNlAttr || length > len(attributes) {
			return nil
		}
		if binary.NativeEndian.Uint16(attributes[2:])&nlaTypeMask == kind {
			return attributes[unix.SizeofNlAttr:length]
		}
		attributes = attributes[min(len(attributes), (length+3)&^3):]
	}
	return nil
}

func family(name string) (uint16, error) {
	got, err := netlink(unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, attribute(unix.CTRL_ATTR_FAMILY_NAME, append([]byte(name), 0)))
	if err != nil {
		return 0, fmt.Errorf("the kernel has no %s: %w", name, err)
	}
	id := find(got, unix.CTRL_ATTR_FAMILY_ID)
	if len(id) < 2 {
		return 0, fmt.Errorf("the kernel does not say which number %s has", name)
	}
	return binary.NativeEndian.Uint16(id), nil
}

// attachDevice gives a connected socket to the kernel, and returns the device.
func attachDevice(volume string, e export, socket int) (string, error) {
	id, err := family(nbdFamily)
	if err != nil {
		return "", err
	}
	item := attribute(sockItem|unix.NLA_F_NESTED, short(sockFD, uint32(socket)))
	var attributes []byte
	for _, a := range [][]byte{
		number(attrSize, e.size), number(attrBlock, blockSize), number(attrTimeout, requestTimeout), number(attrFlags, uint64(e.flags)),
		attribute(attrBackend, append([]byte(volume), 0)), attribute(attrSockets|unix.NLA_F_NESTED, item),
	} {
		attributes = append(attributes, a...)
	}
	got, err := netlink(id, nbdConnect, attributes)
	if err != nil {
		return "", fmt.Errorf("giving %s to the kernel: %w", volume, err)
	}
	index := find(got, attrIndex)
	if len(index) < 4 {
		return "", fmt.Errorf("the kernel does not say which device %s has", volume)
	}
	return fmt.Sprintf("/dev/nbd%d", binary.NativeEndian.Uint32(index)), nil
}

func detachDevice(device string) error {
	id, err := family(nbdFamily)
	if err != nil {
		return err
	}
	var index uint32
	if _, err := fmt.Sscanf(device, "/dev/nbd%d", &index); err != nil {
		return err
	}
	_, err = netlink(id, nbdDisconnect, short(attrIndex, index))
	return err
}

// deviceOf is the device that has a volume, "" if there is none.
func deviceOf(volume string) string {
	backends, err := filepath.Glob("/sys/block/nbd*/backend")
	if err != nil {
		return ""
	}
	for _, path := range backends {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(strings.TrimRight(string(text), "\x00\n")) == volume {
			return "/dev/" + filepath.Base(filepath.Dir(path))
		}
	}
	return ""
}
