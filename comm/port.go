package comm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sluice-engine/sluice/buffer"
)

// Message is what a Port carries.
type Message struct {
	Part    uint32 // partition or tag
	Control bool   // for the collective itself: metadata only
	Meta    []byte // at most 16 MiB
	Data    *buffer.Buffer
}

func (m *Message) dataLen() int64 {
	if m.Data == nil {
		return 0
	}
	return m.Data.Len()
}

// size is what the message brings to its receiver, in bytes.
// Size returns the bytes of metadata and payload together.
func (m *Message) Size() int64 { return int64(len(m.Meta)) + m.dataLen() }

func (m *Message) release() {
	if m.Data != nil {
		m.Data.Release()
	}
}

// A Handler is the collective behind a Port. Its methods run under the progress
// baton, must not block, and may call Notify, Signal, Complete and Abort of
// their Port.
type Handler interface {
	// Next appends the next messages for dst to ms until together they take
	// room bytes, at least one if there is any; see Outbox.Take. Notify says
	// when there are some again.
	Next(dst Rank, room int, ms []Message) []Message
	// Deliver gives over one whole message. Messages of one rank are numbered
	// from 0 in the order in which its Next gave them, and arrive in any.
	Deliver(src Rank, seq uint64, m Message)
	// Batch gives over a run of small messages; the Handler releases it.
	Batch(src Rank, b *Batch)
	// Stalled reports that nothing local is going to free memory: inserting has
	// finished or, if blocked says that callers wait for memory, cannot go on,
	// and nothing complete waits to be taken.
	Stalled(blocked bool) bool
	// Fail ends the operation with a *PeerError.
	Fail(err error)
}

// Port is this rank's end of one operation.
type Port struct {
	c  *Communicator
	op OpID
	// gen tells the uses of one id apart.
	gen uint32
	fp  []byte
	h   Handler
	// ready: the handler has something for that rank that comm has not seen.
	ready []atomic.Bool

	ended bool // Close was called; under Communicator.mu

	// The rest is the core's, under the baton.
	out      []outbound
	in       []inbound
	posting  int // messages with posted segments
	held     []*buffer.Buffer
	err      error
	complete bool
	closed   bool
	gone     bool
}

// Open joins operation op, which every rank opens with an equal Fingerprint.
// Messages of other ranks come only after that was checked. An id may be opened
// again as soon as its last use is complete on this rank. handler makes the
// Handler for the new Port; it is called before anything can arrive, and not at
// all if Open fails.
func (c *Communicator) Open(op OpID, fp Fingerprint, handler func(*Port) Handler) (*Port, error) {
	if op >= MaxFixedOp && op&scopedBit == 0 {
		return nil, fmt.Errorf("comm: open op %d: a fixed id is below %d", uint64(op), uint64(MaxFixedOp))
	}
	p := &Port{c: c, op: op, fp: fp.encode()}
	if len(p.fp) > maxFingerprint {
		return nil, fmt.Errorf("comm: open op %v: parameters of %d bytes, at most %d", op, len(p.fp), maxFingerprint)
	}
	p.init(c.Size())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("comm: open op %v: %w", op, ErrClosed)
	}
	if c.failed != nil {
		return nil, fmt.Errorf("comm: open op %v: %w", op, c.failed)
	}
	e := c.ops[op]
	if e.busy {
		return nil, fmt.Errorf("comm: open op %v: %w", op, ErrOpInUse)
	}
	p.gen = e.next
	p.h = handler(p)
	c.ops[op] = opEntry{next: e.next + 1, busy: true, lingering: e.lingering + 1, unclosed: e.unclosed + 1}
	c.submitLocked(func() { c.core.openPort(p) })
	return p, nil
}

func (p *Port) init(size int) {
	p.ready = make([]atomic.Bool, size)
	p.out = make([]outbound, size)
	p.in = make([]inbound, size)
}

// Notify says that the handler has something for dst. It is cheap when comm
// knows already.
func (p *Port) Notify(dst Rank) {
	if !p.ready[dst].Swap(true) {
		p.c.notify(p, dst)
	}
}

// Signal says that what a Wait of this port waits for may have come.
func (p *Port) Signal() { p.c.signal() }

// Wait drives progress until done reports true or ctx ends. done is called
// often, from this goroutine only, and takes the handler's own lock.
func (p *Port) Wait(ctx context.Context, done func() bool) error { return p.c.wait(ctx, done) }

// Capacity is the largest payload that dst could ever hold, or 0 while dst has
// not been heard of.
func (p *Port) Capacity(dst Rank) int64 { return p.c.capacity[dst].Load() }

// Complete says that this rank needs nothing more from others: the id may be
// used again, and a failure no longer concerns this use of it.
func (p *Port) Complete() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.freeOpLocked(p.op, p.gen)
	p.c.submitLocked(func() { p.c.core.completePort(p) })
}

// Abort ends the operation on all ranks; each has a *PeerError with this cause.
func (p *Port) Abort(cause error) {
	p.c.submit(func() { p.c.core.failPort(p, p.c.info.Rank, cause) })
}

// Close says that the handler will queue nothing more. What is queued still
// goes out if the operation is complete here; otherwise it is aborted.
func (p *Port) Close(cause error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.freeOpLocked(p.op, p.gen)
	if !p.ended {
		p.ended = true
		e := p.c.ops[p.op]
		e.unclosed--
		p.c.ops[p.op] = e
	}
	p.c.submitLocked(func() {
		p.closed = true
		if !p.complete {
			p.c.core.failPort(p, p.c.info.Rank, cause)
		}
		p.c.core.maybeRemove(p)
	})
}

// Request is mem.Request for host memory, whose answer is taken under the
// progress baton: fn must not block. An answer that comes after the end of the
// Communicator is given back.
func (p *Port) Request(mem *buffer.Resource, size int64, fn func(*buffer.Reservation, error)) (cancel func()) {
	return p.c.request(mem, size, []buffer.MemType{buffer.Host}, fn)
}

// ID is the operation's id.
func (p *Port) ID() OpID { return p.op }
