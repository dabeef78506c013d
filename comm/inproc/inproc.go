package inproc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// maxHead is the largest frame without payload, near what network transports
// allow.
const maxHead = 8 << 10

// job is the set of ranks that can reach each other.
type job struct {
	ends []*end
}

// New returns the transports of n ranks that can reach each other, in rank
// order.
func New(n int) []comm.Transport {
	j := &job{ends: make([]*end, n)}
	epoch := rand.Uint32() // tells the jobs of one process apart
	ts := make([]comm.Transport, n)
	for r := range n {
		e := &end{
			info: comm.Info{
				Rank: comm.Rank(r), Size: n, Name: "inproc", Host: fmt.Sprintf("inproc-%d", r),
				Epoch: epoch, HandsOver: true, MaxHead: maxHead,
			},
			job:      j,
			wake:     make(chan struct{}, 1),
			incoming: map[uint64]*announced{},
		}
		j.ends[r], ts[r] = e, e
	}
	return ts
}

// end is one rank's transport.
type end struct {
	info comm.Info
	job  *job
	wake chan struct{}

	// The owner's, under its baton.
	incoming map[uint64]*announced
	token    uint64
	own      []comm.Event // ends of our own pulls
	taken    []item       // being handed out by Poll

	mu     sync.Mutex // guards queue and closed
	queue  []item
	closed bool

	// lending is held while a receiver reads a payload of this rank.
	lending sync.RWMutex
	revoked bool // under lending: nothing of this rank can be fetched any more
}

// announced is a payload that waits to be pulled.
type announced struct {
	from   *end
	cookie uint64
	body   comm.Region
}

type item struct {
	ev  comm.Event
	ann *announced
}

func (e *end) Info() comm.Info { return e.info }

// push appends to e's queue, unless e is closed.
func (e *end) push(it item) bool {
	e.mu.Lock()
	closed := e.closed
	first := len(e.queue) == 0
	if !closed {
		e.queue = append(e.queue, it)
	}
	e.mu.Unlock()
	if first && !closed {
		e.Wake()
	}
	return !closed
}

func (e *end) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *end) Post(sends []comm.Send) (int, error) {
	for _, s := range sends {
		it := item{ev: comm.Event{Kind: comm.EventArrived, Peer: e.info.Rank, Head: append([]byte(nil), s.Head...)}}
		if s.Body.Len > 0 {
			it.ann = &announced{from: e, cookie: s.Cookie, body: s.Body}
			it.ev.Size = s.Body.Len
		}
		if !e.job.ends[s.To].push(it) && it.ann != nil {
			e.own = append(e.own, comm.Event{Kind: comm.EventSent, Peer: s.To, Cookie: s.Cookie, Err: comm.ErrPeerClosed})
		}
	}
	return len(sends), nil
}

func (e *end) Pull(p comm.Pull) error {
	a := e.incoming[p.Token]
	if a == nil {
		return fmt.Errorf("inproc: pull: no payload announced under token %d", p.Token)
	}
	delete(e.incoming, p.Token)
	done := comm.Event{Kind: comm.EventPulled, Peer: a.from.info.Rank, Token: p.Token}
	done.Data, done.Err = a.fetch(p)
	e.own = append(e.own, done)
	return nil
}

// fetch moves or copies the payload and tells the sender.
func (a *announced) fetch(p comm.Pull) (*buffer.Buffer, error) {
	a.from.lending.RLock()
	defer a.from.lending.RUnlock()
	if a.from.revoked {
		return nil, comm.ErrPeerClosed
	}
	sent := comm.Event{Kind: comm.EventSent, Cookie: a.cookie}
	var got *buffer.Buffer
	var err error
	switch {
	case p.Into != nil:
		got, err = handOver(a.body.Buf, p.Into)
	case p.Dst.Len > 0:
		err = copyRegion(p.Dst, a.body)
	default:
		err = comm.ErrDropped
	}
	sent.Err = err
	a.from.push(item{ev: sent})
	return got, err
}

// handOver charges res for b and credits its old owner. A Buffer that cannot
// change accounts by itself is copied, and freed as the receiver's.
func handOver(b *buffer.Buffer, res *buffer.Reservation) (*buffer.Buffer, error) {
	err := res.Adopt(b)
	if err == nil {
		return b, nil
	}
	if !errors.Is(err, buffer.ErrShared) && b.Cap() <= res.Left() {
		return nil, fmt.Errorf("inproc: hand over: %w", err)
	}
	c, err := res.Alloc(b.Len(), nil)
	if err != nil {
		return nil, fmt.Errorf("inproc: hand over: %w", err)
	}
	if err := copyRegion(comm.Region{Buf: c, Len: c.Len()}, comm.Region{Buf: b, Len: b.Len()}); err != nil {
		c.Release()
		return nil, err
	}
	b.Release()
	return c, nil
}

func copyRegion(dst, src comm.Region) error {
	ctx := context.Background() // host memory is ready; nothing waits
	return dst.Buf.OnHost(ctx, func(d []byte) error {
		return src.Buf.OnHost(ctx, func(s []byte) error {
			copy(d[dst.Off:dst.Off+dst.Len], s[src.Off:src.Off+src.Len])
			return nil
		})
	})
}

func (e *end) Poll(ev []comm.Event, max time.Duration) (int, error) {
	n := e.take(ev)
	if n > 0 || max <= 0 {
		return n, nil
	}
	t := time.NewTimer(max)
	defer t.Stop()
	select {
	case <-e.wake:
	case <-t.C:
	}
	return e.take(ev), nil
}

// take moves what has happened into ev.
func (e *end) take(ev []comm.Event) int {
	n := copy(ev, e.own)
	rest := copy(e.own, e.own[n:])
	clear(e.own[rest:])
	e.own = e.own[:rest]
	if len(e.taken) == 0 {
		e.mu.Lock()
		e.taken, e.queue = e.queue, nil
		e.mu.Unlock()
	}
	for n < len(ev) && len(e.taken) > 0 {
		it := e.taken[0]
		e.taken[0] = item{}
		e.taken = e.taken[1:]
		if it.ann != nil {
			e.token++
			it.ev.Token = e.token
			e.incoming[e.token] = it.ann
		}
		ev[n] = it.ev
		n++
	}
	return n
}

// Close takes back what peers have not fetched and lets go of what they
// announced to us.
func (e *end) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	left := append(e.taken, e.queue...)
	e.taken, e.queue = nil, nil
	e.mu.Unlock()

	e.lending.Lock()
	e.revoked = true
	e.lending.Unlock()

	for _, it := range left {
		if it.ann != nil {
			it.ann.refuse()
		}
	}
	for _, a := range e.incoming {
		a.refuse()
	}
	clear(e.incoming)
	for _, peer := range e.job.ends {
		if peer != e {
			peer.push(item{ev: comm.Event{Kind: comm.EventDown, Peer: e.info.Rank}})
		}
	}
	return nil
}

// refuse gives a payload back to its sender.
func (a *announced) refuse() {
	a.from.push(item{ev: comm.Event{Kind: comm.EventSent, Cookie: a.cookie, Err: comm.ErrPeerClosed}})
}
