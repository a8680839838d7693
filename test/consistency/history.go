package consistency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Kind is what an operation does.
type Kind string

// Mkdir to List are about directories. Write, Read and Swap are about a register: the first bytes of a file. A Swap reads the old
// value and writes a new one under one lock.
const (
	Mkdir  Kind = "mkdir"
	Rmdir  Kind = "rmdir"
	Rename Kind = "rename"
	Stat   Kind = "stat"
	List   Kind = "list"
	Write  Kind = "write"
	Read   Kind = "read"
	Swap   Kind = "swap"
)

// Changes reports whether a successful operation of this kind changes something.
func (k Kind) Changes() bool { return k != Stat && k != List && k != Read }

// Request is an operation that a client is asked for.
type Request struct {
	Kind Kind
	Path string
	// To is the new path of a Rename.
	To string `json:",omitempty"`
	// Value is what Write and Swap write.
	Value string `json:",omitempty"`
	// Locked: the file is locked from before its first byte is read or written until after the last.
	Locked bool `json:",omitempty"`
}

// Errors of answers. Others are the kernel's or the server's own words; they say nothing about the result.
const (
	Exists   = "EEXIST"
	Missing  = "ENOENT"
	NotEmpty = "ENOTEMPTY"
	// StaleHandle is only allowed by Promise.Aliases and Promise.TwoWalks.
	StaleHandle = "ESTALE"
)

// Answer is what a client got.
type Answer struct {
	// Error is "" for success.
	Error string `json:",omitempty"`
	// Names is the answer of a List, sorted.
	Names []string `json:",omitempty"`
	// Looked: the error is that of looking the path up, before the change was asked for.
	Looked bool `json:",omitempty"`
	// Got is what Read and Swap read.
	Got string `json:",omitempty"`
}

// Never is the return time of an operation without an answer.
const Never = time.Duration(math.MaxInt64)

// Operation is a request with its answer. Times are those of the Runner's clock, since its start.
type Operation struct {
	Client int
	// Server is where the request went; "" if that is not known.
	Server string
	Request
	Answer
	Call, Return time.Duration
	// Repeated: the request may have been sent a second time after it was executed, to another server, because the first one ended
	// before it answered. No reply cache survives a server (RFC 8881 section 2.10.6), so it may take effect twice, and the answer may
	// be about what it did itself.
	Repeated bool
	// Twice: the request may have taken effect once more before its answer, so that this may be about what it did itself.
	Twice bool

	// first is the time before of one that took effect twice. It has no answer. Right beside the other one it has no effect; unsure
	// is one without the other one, which may have had none anywhere.
	first, unsure bool
}

// Open reports whether there was no answer that says what happened: the operation takes effect at any time after its call, or never.
func (o *Operation) Open() bool { return o.Return == Never }

// Opened is the operation without its answer.
func (o Operation) Opened() Operation {
	o.Answer, o.Return = Answer{}, Never
	return o
}

// before is the first time that an operation took effect.
func (o Operation) before() Operation {
	o.Answer, o.Twice, o.first = Answer{}, false, true
	return o
}

func (o *Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d", o.Client)
	if o.Server != "" {
		fmt.Fprintf(&b, " through %s", o.Server)
	}
	if o.Open() {
		fmt.Fprintf(&b, "  %9.3f …           ", o.Call.Seconds())
	} else {
		fmt.Fprintf(&b, "  %9.3f … %9.3f s", o.Call.Seconds(), o.Return.Seconds())
	}
	fmt.Fprintf(&b, "  %s: %s", o.Request, o.result())
	if o.Repeated {
		b.WriteString(" (maybe sent again)")
	}
	if o.Twice {
		b.WriteString(" (maybe twice)")
	}
	return b.String()
}

func (r Request) String() string {
	out := string(r.Kind) + " " + r.Path
	if r.To != "" {
		out += " → " + r.To
	}
	if r.Value != "" {
		out += " " + r.Value
	}
	if r.Locked {
		out += ", locked"
	}
	return out
}

func (o *Operation) result() string {
	switch {
	case o.first:
		return "maybe done before"
	case o.Open():
		return "no answer"
	case o.Error != "":
		return o.Error
	case o.Kind == List:
		return "[" + strings.Join(o.Names, " ") + "]"
	case o.Kind == Read, o.Kind == Swap:
		return fmt.Sprintf("%q", o.Got)
	}
	return "done"
}

// History is the operations of a run.
type History []Operation

func (h History) String() string {
	var b strings.Builder
	for i := range h {
		b.WriteString(h[i].String() + "\n")
	}
	return b.String()
}

// sorted is the history in the order of its calls.
func (h History) sorted() History {
	out := slices.Clone(h)
	slices.SortStableFunc(out, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	return out
}

// Until is what was known at a time: what had begun, and the answers that had come. What is true of a history is true of it at each
// earlier time, so the shortest history that is wrong is enough.
func (h History) Until(at time.Duration) History {
	var out History
	for _, o := range h {
		switch {
		case o.Call > at:
		case o.Return > at:
			out = append(out, o.Opened())
		default:
			out = append(out, o)
		}
	}
	return out
}

// Window is a time in which something was wrong with a server; "" is any server.
type Window struct {
	Server      string
	From, Until time.Duration
}

// of reports whether the window is about an operation's server.
func (w Window) of(o *Operation) bool {
	return w.Server == "" || o.Server == "" || w.Server == o.Server
}

// RepeatedDuring marks operations that were in flight in one of the windows: a server ended then, and a kernel that waited for its
// answer has sent the request to another one.
func (h History) RepeatedDuring(windows ...Window) History {
	out := slices.Clone(h)
	for i := range out {
		o := &out[i]
		o.Repeated = o.Repeated || slices.ContainsFunc(windows, func(w Window) bool {
			return w.of(o) && o.Call <= w.Until && o.Return >= w.From
		})
	}
	return out
}

// TwiceDuring marks changes that were in flight in one of the windows, in which answers to their steps may have been lost. Then a change is
// put off after it was made, and begins again: it makes again what another client removed meanwhile, or is refused because of what it did.
func (h History) TwiceDuring(windows ...Window) History {
	out := h.RepeatedDuring(windows...)
	for i, before := range h {
		o := &out[i]
		o.Twice = o.Twice || o.Repeated && !before.Repeated && o.Kind.Changes()
		o.Repeated = before.Repeated
	}
	return out
}

// RepeatedAfter marks operations that took longer than some time. A change that is put off for so long may have been finished by another
// server meanwhile, so that the client that asks again gets an error about its own change.
func (h History) RepeatedAfter(long time.Duration) History {
	out := slices.Clone(h)
	for i := range out {
		o := &out[i]
		o.Repeated = o.Repeated || o.Kind.Changes() && !o.Open() && o.Return-o.Call > long
	}
	return out
}

// Count counts the operations with an answer, and those without.
func (h History) Count() (answered, open int) {
	for i := range h {
		if h[i].Open() {
			open++
		} else {
			answered++
		}
	}
	return answered, open
}
