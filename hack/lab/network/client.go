package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// export is what a handshake agreed on.
type export struct {
	size  uint64
	flags uint16
}

// connect asks for a volume, and leaves the connection ready for requests: the kernel's, on a node.
func connect(connection net.Conn, volume, node string) (export, error) {
	var greeting struct {
		Magic, Option uint64
		Flags         uint16
	}
	if err := binary.Read(connection, binary.BigEndian, &greeting); err != nil {
		return export{}, err
	}
	if greeting.Magic != magicGreeting || greeting.Option != magicOption {
		return export{}, errors.New("not an NBD server")
	}
	name := exportName(volume, node)
	data := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
	data = append(data, name...)
	data = binary.BigEndian.AppendUint16(data, 0)
	message := binary.BigEndian.AppendUint32(nil, flagFixedNewstyle|flagNoZeroes)
	message = binary.BigEndian.AppendUint64(message, magicOption)
	message = binary.BigEndian.AppendUint32(message, optionGo)
	message = binary.BigEndian.AppendUint32(message, uint32(len(data)))
	if _, err := connection.Write(append(message, data...)); err != nil {
		return export{}, err
	}
	var got export
	for {
		var header struct {
			Magic                uint64
			Option, Kind, Length uint32
		}
		if err := binary.Read(connection, binary.BigEndian, &header); err != nil {
			return export{}, err
		}
		if header.Magic != magicReply || header.Length > 4096 {
			return export{}, errors.New("not a reply of NBD")
		}
		text := make([]byte, header.Length)
		if _, err := io.ReadFull(connection, text); err != nil {
			return export{}, err
		}
		switch {
		case header.Kind == replyAck:
			return got, nil
		case header.Kind == replyInfo && len(text) == 12 && binary.BigEndian.Uint16(text) == infoExport:
			got = export{size: binary.BigEndian.Uint64(text[2:]), flags: binary.BigEndian.Uint16(text[10:])}
		case header.Kind != replyInfo:
			return export{}, fmt.Errorf("volume %s is refused: %s", volume, text)
		}
	}
}
