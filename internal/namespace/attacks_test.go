package namespace

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"

	"github.com/howdah/howdah/internal/nfs4/peertest"
)

// attack is something that hostile clients do for as long as the context lasts. Its result is logged beside the measurements.
type attack struct {
	name string
	// long is true for those that only make bench-hostile does.
	long bool
	run  func(ctx context.Context, s *target) string
}

var attacks = []attack{
	{"17 connections that list and do not read", false, func(ctx context.Context, s *target) string {
		return deaf(ctx, s, 17, 1, readdir())
	}},
	{"200 connections of 5 addresses that list and do not read", true, func(ctx context.Context, s *target) string {
		return deaf(ctx, s, 200, 5, readdir())
	}},
	{"64 connections that flood with GETATTR and do not read", false, func(ctx context.Context, s *target) string {
		return deaf(ctx, s, 64, 1, getattr)
	}},
	{"64 connections of 5 addresses that list and read", true, listers},
	{"as many clients as can be over one connection", false, manyClients},
	{"5,000 idle connections of 5 addresses", false, idle},
	{"connections that come and go", true, churn},
	{"mkdir without end: 16 connections with 64 slots each", false, mkdirStorm},
	{"EXCHANGE_ID without end on 16 connections", false, exchangeFlood},
	{"clients that say they are the others, restarted", false, impostors},
	{"400 slow senders of large requests", false, slowSenders},
	{"requests of 1 MiB and malformed ones", false, malformed},
}

// hostile is one of the attackers' addresses, which are others in each attack.
func (s *target) hostile(i, of int) string { return fmt.Sprintf("127.0.%d.%d", s.attacks, 2+i%of) }

// each runs an attacker for each number, again and again while the context lasts, and waits for them at its end.
func each(ctx context.Context, count int, attacker func(i int) error) {
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			for ctx.Err() == nil {
				if attacker(i) != nil {
					select { // Whoever is turned away knocks again.
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
		})
	}
	all.Wait()
}

// ending closes a connection when the context ends.
func ending(ctx context.Context, p *peertest.Peer) func() {
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	return func() {
		stop()
		_ = p.Close()
	}
}

// deaf sends the same operation on all slots and reads nothing.
func deaf(ctx context.Context, s *target, count, addresses int, op nfsv4.NfsArgop4) string {
	each(ctx, count, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, addresses))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		if _, err := p.Login(fmt.Sprint("deaf ", i)); err != nil {
			return err
		}
		_ = p.Conn.(*net.TCPConn).SetReadBuffer(4096)
		for slot := uint32(0); ; slot = (slot + 1) % 64 {
			ops := []nfsv4.NfsArgop4{p.Sequence(slot)}
			ops = append(ops, walk("/data")...)
			for range 8 {
				ops = append(ops, op)
			}
			if _, err := p.Write(p.Message(ops...)); err != nil {
				return err
			}
		}
	})
	return ""
}

func listers(ctx context.Context, s *target) string {
	each(ctx, 64, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 5))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		if _, err := p.Login(fmt.Sprint("lister ", i)); err != nil {
			return err
		}
		for {
			if _, err := p.Call(append([]nfsv4.NfsArgop4{p.Sequence(0)}, append(walk("/data"), readdir())...)...); err != nil {
				return err
			}
		}
	})
	return ""
}

func manyClients(ctx context.Context, s *target) string {
	var in, put atomic.Int64
	each(ctx, 1, func(int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(0, 1))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		for i := 0; ; i++ {
			status, err := p.Login(fmt.Sprint("one of many ", i))
			if err != nil {
				return err
			}
			if status == nfsv4.NFS4_OK {
				in.Add(1)
			} else {
				put.Add(1)
			}
		}
	})
	return fmt.Sprintf("; %d got in, %d were put off", in.Load(), put.Load())
}

func idle(ctx context.Context, s *target) string {
	const connections, dialers = 5000, 20
	var open atomic.Int64
	each(ctx, dialers, func(k int) error {
		var held []net.Conn
		for i := range connections / dialers {
			p, err := peertest.Connect(ctx, s.address, s.hostile(k+i, 5))
			if err != nil {
				break
			}
			open.Add(1)
			held = append(held, p)
		}
		<-ctx.Done()
		for _, conn := range held {
			_ = conn.Close()
		}
		return nil
	})
	return fmt.Sprintf("; %d were opened", open.Load())
}

func churn(ctx context.Context, s *target) string {
	var opened atomic.Int64
	each(ctx, 8, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 5))
		if err != nil {
			return err
		}
		opened.Add(1)
		return p.Close()
	})
	return fmt.Sprintf("; %d were opened", opened.Load())
}

func mkdirStorm(ctx context.Context, s *target) string {
	var made, put, number atomic.Int64
	each(ctx, 16, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(0, 1))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		if status, err := p.Login(fmt.Sprint("maker ", i)); err != nil || status != nfsv4.NFS4_OK {
			return fmt.Errorf("%v: %w", status, err)
		}
		for {
			var batch []byte
			for slot := range uint32(64) {
				ops := append([]nfsv4.NfsArgop4{p.Sequence(slot)}, walk("/data")...)
				batch = append(batch, p.Message(append(ops, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{
					Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: fmt.Sprint("storm-", number.Add(1)),
				}})...)...)
			}
			if _, err := p.Write(batch); err != nil {
				return err
			}
			for range 64 {
				res, err := p.Reply()
				if err != nil {
					return err
				}
				if res.Status == nfsv4.NFS4_OK {
					made.Add(1)
				} else {
					put.Add(1)
				}
			}
		}
	})
	return fmt.Sprintf("; %d were made, %d put off", made.Load(), put.Load())
}

func exchangeFlood(ctx context.Context, s *target) string {
	var sent atomic.Int64
	each(ctx, 16, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 3))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		for {
			if _, err := p.Call(peertest.ExchangeID(fmt.Sprint("flood ", sent.Add(1)))); err != nil {
				return err
			}
		}
	})
	return fmt.Sprintf("; %d were sent", sent.Load())
}

// impostors come with the owner strings and the principal of the well-behaved clients and say that these have restarted, or not.
func impostors(ctx context.Context, s *target) string {
	var in, sent atomic.Int64
	each(ctx, 16, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 3))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		for {
			p.Verifier++
			for _, owner := range []string{"resident", fmt.Sprint("newcomer ", sent.Add(1)/16)} {
				status, err := p.Login(owner)
				if err != nil {
					return err
				}
				if status == nfsv4.NFS4_OK {
					in.Add(1)
				}
			}
		}
	})
	return fmt.Sprintf("; %d got sessions of their own", in.Load())
}

// slowSenders claim a large request, send a good part of it, and then a byte now and then.
func slowSenders(ctx context.Context, s *target) string {
	each(ctx, 400, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 5))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		start := binary.BigEndian.AppendUint32(nil, 1<<31|1<<20)
		if _, err := p.Write(append(start, make([]byte, 600<<10)...)); err != nil {
			return err
		}
		for {
			if _, err := p.Write([]byte{0}); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return ""
}

func malformed(ctx context.Context, s *target) string {
	var sent atomic.Int64
	each(ctx, 16, func(i int) error {
		p, err := peertest.Connect(ctx, s.address, s.hostile(i, 2))
		if err != nil {
			return err
		}
		defer ending(ctx, p)()
		sent.Add(1)
		whole := p.Message(peertest.ExchangeID("malformed"))
		switch i % 4 {
		case 0: // Larger than permitted.
			_, err = p.Write(binary.BigEndian.AppendUint32(nil, 1<<31|1<<30))
		case 1: // A compound of a megabyte with thousands of empty parts.
			large := append(whole[:len(whole)-4:len(whole)-4], make([]byte, 1<<20)...)
			binary.BigEndian.PutUint32(large, 1<<31|uint32(len(large)-4))
			_, err = p.Write(large)
		case 2: // Cut off.
			binary.BigEndian.PutUint32(whole, 1<<31|60)
			_, err = p.Write(whole[:64])
		default: // Not RPC at all.
			_, err = p.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		}
		if err != nil {
			return err
		}
		_ = p.SetReadDeadline(time.Now().Add(time.Second))
		_, err = p.Read(make([]byte, 4096))
		return err
	})
	return fmt.Sprintf("; %d were sent", sent.Load())
}
