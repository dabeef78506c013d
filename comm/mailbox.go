package comm

import (
	"context"
	"fmt"
	"sync"

	"github.com/sluice-engine/sluice/buffer"
)

// Mailbox sends tagged messages between two ranks, outside any collective. It
// is always open. Messages with one source and tag are received in the order
// in which they were sent. It may be used by several goroutines.
type Mailbox struct {
	c    *Communicator
	port *Port

	mu     sync.Mutex
	out    *Outbox
	queued []int64 // bytes that wait to be sent to each rank
	next   []uint64
	ahead  []map[uint64]mail // arrived before an earlier one, by source
	inbox  map[mailKey][]*buffer.PackedData
	unread int
	left   []bool // ranks that will send nothing more
	// batches wait for memory (true), or are taken apart.
	batches map[*mailBatch]bool
	err     error
}

type mailBatch struct {
	src    Rank
	b      *Batch
	cancel func() // of the memory request
}

type mailKey struct {
	src Rank
	tag uint32
}

type mail struct {
	tag uint32
	p   *buffer.PackedData
}

// mailQueue is how many bytes may be queued for one rank before Send
// waits.
const mailQueue = 4 << 20

func newMailbox(c *Communicator) *Mailbox {
	n := c.info.Size
	m := &Mailbox{
		c:      c,
		out:    NewOutbox(n, OrderRank),
		queued: make([]int64, n),
		next:   make([]uint64, n),
		ahead:  make([]map[uint64]mail, n),
		inbox:  map[mailKey][]*buffer.PackedData{},
		left:   make([]bool, n),

		batches: map[*mailBatch]bool{},
	}
	m.port = &Port{c: c, op: mailOp, h: (*mailHandler)(m)}
	m.port.init(n)
	return m
}

// openMail makes the mailbox's port live. There is nothing to agree on, so it
// counts as opened by all.
func (k *core) openMail(p *Port) {
	k.ports[portKey{op: mailOp}] = p
	for r := range p.in {
		p.in[r].opened = true
	}
}

// Send takes p and queues it for dst under tag. It waits while 4 MiB or more
// are queued for dst; on any error p is still the
// caller's.
func (m *Mailbox) Send(ctx context.Context, dst Rank, tag uint32, p *buffer.PackedData) error {
	if dst < 0 || int(dst) >= m.c.info.Size {
		return fmt.Errorf("comm: send to rank %d of %d: no such rank", dst, m.c.info.Size)
	}
	err := m.c.wait(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.err != nil || m.queued[dst] < mailQueue
	})
	m.mu.Lock()
	if err == nil {
		err = m.err
	}
	if err != nil {
		m.mu.Unlock()
		return fmt.Errorf("comm: send to rank %d: %w", dst, err)
	}
	p = p.Take()
	if dst == m.c.info.Rank {
		m.fileLocked(dst, mail{tag, p})
		m.mu.Unlock()
		m.c.signal()
		return nil
	}
	msg := Message{Part: tag, Meta: p.Meta, Data: p.Data}
	m.queued[dst] += msg.Size()
	m.out.Push(dst, msg)
	m.mu.Unlock()
	m.port.Notify(dst)
	return nil
}

// Recv returns the next message that src sent under tag; the caller owns it.
func (m *Mailbox) Recv(ctx context.Context, src Rank, tag uint32) (*buffer.PackedData, error) {
	if src < 0 || int(src) >= m.c.info.Size {
		return nil, fmt.Errorf("comm: receive from rank %d of %d: no such rank", src, m.c.info.Size)
	}
	key := mailKey{src, tag}
	var got *buffer.PackedData
	var failed error
	err := m.c.wait(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if q := m.inbox[key]; len(q) > 0 {
			got = q[0]
			if m.inbox[key] = q[1:]; len(q) == 1 {
				delete(m.inbox, key)
			}
			m.unread--
			return true
		}
		if failed = m.err; failed == nil && m.left[src] && !m.unpackingLocked(src) {
			failed = &PeerError{Rank: src, Op: NoOp, Cause: errLeft}
		}
		return failed != nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("comm: receive from rank %d: %w", src, err)
	}
	if got.Data != nil {
		got.Data.SetHolder(buffer.HeldByCaller)
	}
	return got, nil
}

// peerLeft notes that src has left; what it sent is here, or among the batches
// that wait for memory.
func (m *Mailbox) peerLeft(src Rank) {
	m.mu.Lock()
	m.left[src] = true
	m.mu.Unlock()
	m.c.signal()
}

// fileLocked puts a message where Recv finds it.
func (m *Mailbox) fileLocked(src Rank, l mail) {
	key := mailKey{src, l.tag}
	m.inbox[key] = append(m.inbox[key], l.p)
	m.unread++
}

// file takes message seq of src and files it once all before it have come.
func (m *Mailbox) file(src Rank, seq uint64, l mail) {
	m.mu.Lock()
	if m.err != nil {
		m.mu.Unlock()
		l.p.Release()
		return
	}
	if seq != m.next[src] {
		if m.ahead[src] == nil {
			m.ahead[src] = map[uint64]mail{}
		}
		m.ahead[src][seq] = l
		m.mu.Unlock()
		return
	}
	for ok := true; ok; l, ok = m.ahead[src][m.next[src]] {
		delete(m.ahead[src], m.next[src])
		m.fileLocked(src, l)
		m.next[src]++
	}
	m.mu.Unlock()
	m.c.signal()
}

// unpackingLocked reports whether a batch of src is not taken apart yet.
func (m *Mailbox) unpackingLocked(src Rank) bool {
	for w := range m.batches {
		if w.src == src {
			return true
		}
	}
	return false
}

// fail ends all that waits and drops what nobody has received.
func (m *Mailbox) fail(err error) {
	m.mu.Lock()
	if m.err == nil {
		m.err = err
	}
	m.out.Drop()
	for _, q := range m.inbox {
		for _, p := range q {
			p.Release()
		}
	}
	clear(m.inbox)
	m.unread = 0
	for src, a := range m.ahead {
		for _, l := range a {
			l.p.Release()
		}
		m.ahead[src] = nil
	}
	for w, waits := range m.batches {
		if waits {
			w.drop()
			delete(m.batches, w)
		}
	}
	m.mu.Unlock()
	m.c.signal()
}
