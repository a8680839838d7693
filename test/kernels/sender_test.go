package kernels

import "net"

// send accepts connections at an address and sends zeros on each as fast as the other side takes them.
func send(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = connection.Close() }()
			zeros := make([]byte, 1<<18)
			for {
				if _, err := connection.Write(zeros); err != nil {
					return // It has enough.
				}
			}
		}()
	}
}
