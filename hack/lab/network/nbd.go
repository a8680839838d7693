package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The protocol's numbers (NBD's doc/proto.md): fixed newstyle handshake with NBD_OPT_GO, simple replies.
const (
	magicGreeting = 0x4e42444d41474943 // NBDMAGIC
	magicOption   = 0x49484156454F5054 // IHAVEOPT
	magicReply    = 0x3e889045565a9
	magicRequest  = 0x25609513
	magicAnswer   = 0x67446698

	flagFixedNewstyle = 1
	flagNoZeroes      = 2

	optionAbort = 2
	optionInfo  = 6
	optionGo    = 7

	replyAck         = 1
	replyInfo        = 3
	replyUnsupported = 1<<31 | 1
	replyPolicy      = 1<<31 | 2

	infoExport = 0

	flagHasFlags  = 1 << 0
	flagSendFlush = 1 << 2
	flagSendFUA   = 1 << 3
	flagSendTrim  = 1 << 5

	commandRead       = 0
	commandWrite      = 1
	commandDisconnect = 2
	commandFlush      = 3
	commandTrim       = 4
	commandFUA        = 1

	// maxLength is the most that a kernel asks for at once; more ends the connection.
	maxLength = 32 << 20
)

const transmission = flagHasFlags | flagSendFlush | flagSendFUA | flagSendTrim

// exportName is what a node asks for: the volume and its own name. Nodes of a lab are trusted with their names, as a network
// storage trusts initiator names.
func exportName(volume, node string) string { return volume + "@" + node }

func (s *storage) serveNBD(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = connection.Close() }()
			if err := s.serveConnection(connection); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				log.Printf("%s: %v", connection.RemoteAddr(), err)
			}
		}()
	}
}

func (s *storage) serveConnection(connection net.Conn) error {
	in := bufio.NewReaderSize(connection, 1<<17)
	defer s.forget(connection)
	volume, node, file, err := s.handshake(in, connection)
	if err != nil || file == nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for {
		ended, err := s.request(in, connection, volume, node, file)
		if ended || err != nil {
			return err
		}
	}
}

// handshake answers options until the client has an export; the file is nil if it gave up.
func (s *storage) handshake(in io.Reader, connection net.Conn) (volume, node string, file *os.File, err error) {
	greeting := binary.BigEndian.AppendUint64(nil, magicGreeting)
	greeting = binary.BigEndian.AppendUint64(greeting, magicOption)
	greeting = binary.BigEndian.AppendUint16(greeting, flagFixedNewstyle|flagNoZeroes)
	if _, err := connection.Write(greeting); err != nil {
		return "", "", nil, err
	}
	var flags uint32
	if err := binary.Read(in, binary.BigEndian, &flags); err != nil {
		return "", "", nil, err
	}
	for {
		var option struct {
			Magic          uint64
			Option, Length uint32
		}
		if err := binary.Read(in, binary.BigEndian, &option); err != nil {
			return "", "", nil, err
		}
		if option.Magic != magicOption || option.Length > 4096 {
			return "", "", nil, errors.New("not an option of NBD")
		}
		data := make([]byte, option.Length)
		if _, err := io.ReadFull(in, data); err != nil {
			return "", "", nil, err
		}
		switch option.Option {
		case optionGo, optionInfo:
			volume, node = splitExport(data)
			file, err = s.open(volume, node, connection)
			if err != nil {
				log.Printf("%s may not use %s: %v", node, volume, err)
				if err := reply(connection, option.Option, replyPolicy, []byte(err.Error())); err != nil {
					return "", "", nil, err
				}
				continue
			}
			if err := acknowledge(connection, option.Option, file); err != nil {
				_ = file.Close()
				return "", "", nil, err
			}
			if option.Option == optionGo {
				return volume, node, file, nil
			}
			_ = file.Close()
		case optionAbort:
			return "", "", nil, reply(connection, option.Option, replyAck, nil)
		default:
			if err := reply(connection, option.Option, replyUnsupported, nil); err != nil {
				return "", "", nil, err
			}
		}
	}
}

func splitExport(data []byte) (volume, node string) {
	if len(data) < 4 {
		return "", ""
	}
	length := binary.BigEndian.Uint32(data)
	if int64(length) > int64(len(data)-4) {
		return "", ""
	}
	volume, node, _ = strings.Cut(string(data[4:4+length]), "@")
	return volume, node
}

func acknowledge(connection net.Conn, option uint32, file *os.File) error {
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	info := binary.BigEndian.AppendUint16(nil, infoExport)
	info = binary.BigEndian.AppendUint64(info, uint64(stat.Size()))
	info = binary.BigEndian.AppendUint16(info, transmission)
	if err := reply(connection, option, replyInfo, info); err != nil {
		return err
	}
	return reply(connection, option, replyAck, nil)
}

func reply(connection net.Conn, option, kind uint32, data []byte) error {
	header := binary.BigEndian.AppendUint64(nil, magicReply)
	for _, field := range []uint32{option, kind, uint32(len(data))} {
		header = binary.BigEndian.AppendUint32(header, field)
	}
	_, err := connection.Write(append(header, data...))
	return err
}

type request struct {
	Magic          uint32
	Flags, Command uint16
	Handle, Offset uint64
	Length         uint32
}

// request carries out one request, and reports whether it was the last one.
func (s *storage) request(in io.Reader, connection net.Conn, volume, node string, file *os.File) (bool, error) {
	var r request
	if err := binary.Read(in, binary.BigEndian, &r); err != nil {
		return false, err
	}
	if r.Magic != magicRequest || r.Length > maxLength && r.Command != commandTrim {
		return false, errors.New("not a request of NBD")
	}
	var data []byte
	if r.Command == commandWrite || r.Command == commandRead {
		data = make([]byte, r.Length)
	}
	var err error
	switch r.Command {
	case commandDisconnect:
		return true, nil
	case commandRead:
		_, err = file.ReadAt(data, int64(r.Offset))
	case commandWrite:
		if _, err := io.ReadFull(in, data); err != nil {
			return false, err
		}
		err = s.change(volume, node, func() error { return writeAt(file, data, r) })
		data = nil
	case commandFlush:
		err = s.change(volume, node, file.Sync)
	case commandTrim:
		err = s.change(volume, node, func() error {
			return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(r.Offset), int64(r.Length))
		})
	default:
		err = fmt.Errorf("command %d", r.Command)
	}
	if errors.Is(err, errNotPublished) {
		return false, err // Without an answer: the node must not take it for done.
	}
	return false, answer(connection, r.Handle, data, err)
}

func writeAt(file *os.File, data []byte, r request) error {
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	if int64(r.Offset)+int64(len(data)) > stat.Size() {
		return fmt.Errorf("a write behind the end, at %d", r.Offset)
	}
	if _, err := file.WriteAt(data, int64(r.Offset)); err != nil {
		return err
	}
	if r.Flags&commandFUA != 0 {
		return file.Sync()
	}
	return nil
}

func answer(connection net.Conn, handle uint64, data []byte, fault error) error {
	number := uint32(0)
	if fault != nil {
		log.Printf("%s: %v", connection.RemoteAddr(), fault)
		number, data = uint32(unix.EIO), nil
	}
	header := binary.BigEndian.AppendUint32(nil, magicAnswer)
	header = binary.BigEndian.AppendUint32(header, number)
	header = binary.BigEndian.AppendUint64(header, handle)
	_, err := connection.Write(append(header, data...))
	return err
}
