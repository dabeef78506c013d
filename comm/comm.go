package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-engine/sluice/buffer"
)

// Config holds the numbers of a Communicator. The zero value is the default.
type Config struct {
	// Window is how many payloads may be on the way to one peer; 0: 8.
	Window int
	// WireBytes bounds the bytes on the way to all peers together, but always
	// lets one payload through; 0: 64 MiB, at most a quarter of the host limit.
	WireBytes int64
	// CoalesceBytes is the largest message, metadata and payload, that is sent
	// in a batch with others; 0: 1 KiB, at most 64 KiB.
	CoalesceBytes int
	// BatchBytes is the size of a batch; 0: 64 KiB, less under a small limit.
	BatchBytes int
}

const (
	minSegment = 64 << 10
	maxSegment = 4 << 20
	minHead    = HeaderSize + maxCause // an abort must always fit
	minCredit  = 16 << 10
	maxCredit  = 64 << 10
	maxBatch   = 64 << 10
)

// resolve fills in the defaults for a job of size ranks under a host limit and
// reports all faults together.
func (cfg Config) resolve(limit int64, info Info) (settings, error) {
	s := settings{window: cfg.Window, wireBytes: cfg.WireBytes, coalesce: cfg.CoalesceBytes, batch: cfg.BatchBytes}
	var errs []error
	if cfg.Window < 0 || cfg.WireBytes < 0 || cfg.CoalesceBytes < 0 || cfg.BatchBytes < 0 {
		errs = append(errs, errors.New("a number in Config is negative"))
	}
	if cfg.CoalesceBytes > maxBatch {
		errs = append(errs, fmt.Errorf("CoalesceBytes %d is above %d", cfg.CoalesceBytes, maxBatch))
	}
	if info.MaxHead < minHead || info.MaxHead > maxCredit {
		errs = append(errs, fmt.Errorf("transport %s takes frames of %d bytes, not between %d and %d", info.Name, info.MaxHead, minHead, maxCredit))
	}
	if info.Rank < 0 || int(info.Rank) >= info.Size {
		errs = append(errs, fmt.Errorf("rank %d of %d", info.Rank, info.Size))
	}
	if s.window == 0 {
		s.window = 8
	}
	if s.wireBytes == 0 {
		s.wireBytes = min(64<<20, limit/4)
	}
	if s.coalesce == 0 {
		s.coalesce = 1 << 10
	}
	if s.batch == 0 {
		s.batch = int(min(maxBatch, max(4<<10, limit/int64(16*info.Size))))
	}
	s.credit = int(min(maxCredit, max(minCredit, int64(info.MaxHead), limit/int64(16*max(1, info.Size-1)))))
	s.segment = min(maxSegment, max(minSegment, limit/16))
	return s, errors.Join(errs...)
}

// Communicator joins the ranks of a job. Its methods may be called from
// several goroutines.
type Communicator struct {
	info     Info
	t        Transport
	mem      *buffer.Resource
	credit   *buffer.Reservation // what peers may send us eagerly
	capacity []atomic.Int64
	mail     *Mailbox

	// The holder of the baton uses these; see baton.go.
	core   *core
	events []Event

	mu       sync.Mutex
	cmds     []func()
	spare    []func()
	notified []notice
	scopes   map[string]scopeState
	ops      map[OpID]opEntry
	baton    batonState
	failed   error
	closed   bool
	ended    bool          // and everything of it is freed
	stopped  chan struct{} // closed when the background goroutine has ended
}

// opEntry is the state of one operation id on this rank.
type opEntry struct {
	next      uint32 // generation of the next Open
	busy      bool   // the latest use is not complete
	lingering int    // uses that still have something to send
	unclosed  int    // uses whose Port is not closed
}

type notice struct {
	p   *Port
	dst Rank
}

// New takes t over and starts background progress. Every rank of the job calls
// it; it does not wait for them. mem serves one Communicator at a time and is
// charged for the eager frames that peers may have on their way, 16 to 64 KiB
// for each.
func New(t Transport, mem *buffer.Resource, cfg Config) (*Communicator, error) {
	c, err := assemble(t, mem, cfg)
	if err != nil {
		return nil, err
	}
	go c.background()
	return c, nil
}

// assemble makes a Communicator that nobody drives yet.
func assemble(t Transport, mem *buffer.Resource, cfg Config) (*Communicator, error) {
	info := t.Info()
	set, err := cfg.resolve(limitOf(mem), info)
	if err != nil {
		return nil, fmt.Errorf("comm: new: %w", err)
	}
	c := &Communicator{
		info:     info,
		t:        t,
		mem:      mem,
		capacity: make([]atomic.Int64, info.Size),
		events:   make([]Event, 64),
		scopes:   map[string]scopeState{},
		ops:      map[OpID]opEntry{},
		stopped:  make(chan struct{}),
	}
	if n := int64(set.credit) * int64(info.Size-1); n > 0 {
		res, ok := mem.TryReserve(n, buffer.Host)
		if !ok {
			return nil, fmt.Errorf("comm: new: eager credit for %d peers: %w", info.Size-1, mem.NoMemory(buffer.Host, n, ""))
		}
		res.SetHolder(buffer.HeldStaging)
		c.credit = res
	}
	c.mail = newMailbox(c)
	k := newCore(info, set, mem)
	k.request, k.signal, k.failed, k.removed = c.request, c.signal, c.setFailed, c.portRemoved
	k.gone = c.mail.peerLeft
	c.core = k
	c.baton.init()
	mem.OnChange(c.kick)
	c.submit(func() {
		k.start()
		k.openMail(c.mail.port)
	})
	return c, nil
}

// Rank is this process's number, from 0 to Size-1.
func (c *Communicator) Rank() Rank { return c.info.Rank }

// Size is the number of ranks.
func (c *Communicator) Size() int { return c.info.Size }

// Transport names the driver underneath.
func (c *Communicator) Transport() string { return c.info.Name }

// Mailbox is the tagged send and receive of this Communicator.
func (c *Communicator) Mailbox() *Mailbox { return c.mail }

// Barrier returns once every rank has called it. It is collective, in the same
// order on all ranks. If ctx ends first the barrier still counts this rank as
// arrived.
func (c *Communicator) Barrier(ctx context.Context) error {
	if err := c.live(); err != nil {
		return fmt.Errorf("comm: barrier: %w", err)
	}
	b := &barrier{}
	c.submit(func() { c.core.barriers.enter(c.core, b) })
	err := c.wait(ctx, b.done.Load)
	if err == nil && b.broken.Load() {
		err = c.live()
	}
	if err != nil {
		return fmt.Errorf("comm: barrier: %w", err)
	}
	return nil
}

// live reports why nothing new can start, if so.
func (c *Communicator) live() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return c.failed
	}
	if c.closed {
		return ErrClosed
	}
	return nil
}

// Abort ends everything on every reachable rank: each waiting call returns a
// *PeerError that names this rank and carries cause.
func (c *Communicator) Abort(cause error) {
	c.submit(func() { c.core.abortAll(c.info.Rank, cause) })
}

// abortLinger is how long Close of an aborted Communicator waits for the others
// to say that they know.
const abortLinger = time.Second

// Close leaves the job. It is collective: it returns once every rank has called
// it and all that was queued has been delivered, or when ctx ends, in which
// case the rest is lost and peers see this rank as gone. With operations still
// open it fails with ErrInUse and changes nothing. After an Abort it waits at
// most a second for the others.
func (c *Communicator) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	if c.failed == nil {
		for op, e := range c.ops {
			if e.unclosed > 0 {
				c.mu.Unlock()
				return fmt.Errorf("comm: close: op %v: %w", op, ErrInUse)
			}
		}
	}
	c.closed = true
	aborted := c.failed != nil
	c.submitLocked(func() { c.core.closing = true })
	c.mu.Unlock()

	var err error
	if !aborted {
		err = c.wait(ctx, func() bool { return c.baton.left.Load() })
	}
	if aborted || c.failure() != nil {
		lingering, cancel := context.WithTimeout(ctx, abortLinger)
		_ = c.wait(lingering, func() bool { return c.baton.acked.Load() }) // bounded by design
		cancel()
		err = nil
	}
	c.stop()
	c.mem.OnChange(nil)
	closeErr := c.t.Close()
	c.core.teardown()
	if c.credit != nil {
		c.credit.Release()
	}
	c.end()
	if err = errors.Join(err, closeErr); err != nil {
		return fmt.Errorf("comm: close: %w", err)
	}
	return nil
}

// setFailed is the core's word that the job has ended.
func (c *Communicator) setFailed(err error) {
	c.mu.Lock()
	c.failed = err
	c.mu.Unlock()
}

func (c *Communicator) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// freeOpLocked lets op be opened again, if gen is its latest use.
func (c *Communicator) freeOpLocked(op OpID, gen uint32) {
	if e := c.ops[op]; e.next == gen+1 {
		e.busy = false
		c.ops[op] = e
	}
}

// portRemoved is the core's word that a port has nothing left to do.
func (c *Communicator) portRemoved(p *Port) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freeOpLocked(p.op, p.gen)
	e := c.ops[p.op]
	if e.lingering--; e.lingering == 0 && p.op&scopedBit != 0 {
		delete(c.ops, p.op) // never used again
		return
	}
	c.ops[p.op] = e
}

// Stats counts what a Communicator has done so far.
type Stats struct {
	PayloadCopies  int64   // payload bytes copied between ranks; 0 where buffers are handed over
	CoalescedBytes int64   // bytes of small messages that were packed into batches
	Dropped        int64   // stale or duplicate frames refused
	Parked         int     // messages that wait for memory on this rank now
	SentTo         []int64 // payload bytes sent to each rank
}

// Stats returns a consistent copy, taken between two steps of progress.
func (c *Communicator) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	var got atomic.Bool
	c.submit(func() {
		st := &c.core.stats
		s = Stats{st.copied, st.coalesced, st.dropped, st.parked, append([]int64(nil), st.sentTo...)}
		got.Store(true)
		c.signal()
	})
	err := c.wait(ctx, got.Load)
	return s, err
}
