package buffer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-engine/sluice/cuda"
	"github.com/sluice-engine/sluice/internal/invariant"
)

// A Resource is the accountant of one rank. Its methods may be called from
// several goroutines.
type Resource struct {
	arena     *Arena
	small     *smallBlocks
	store     Store // kept for the disk tier, which is not there yet
	alignment int64
	patience  time.Duration // Config.MemoryWait

	copied atomic.Int64
	empty  atomic.Int64 // live buffers that are charged nothing

	mu struct {
		sync.Mutex
		types   [NumMemTypes]account
		waiting waiters
		version uint64
		changed func()
		closed  bool
	}
	made creations // checked builds: where each live buffer was made
}

// account is one memory type of a Resource, in bytes.
type account struct {
	limit      int64
	total      int64 // used and reserved
	peak       int64 // of total
	kept       int64 // set aside for the waiter that collects
	overbooked int64
	held       [NumHolders]int64 // sums to total
	// Alloc moves bytes from reserved to used without taking the lock.
	reserved atomic.Int64
}

// available returns what may be granted; negative when above the limit.
func (a *account) available() int64 { return a.limit - a.total - a.kept }

// add charges n reserved bytes.
func (a *account) add(n int64, h Holder) {
	a.total += n
	a.held[h] += n
	a.reserved.Add(n)
	a.peak = max(a.peak, a.total)
}

// Usage is a snapshot of one memory type of a Resource, in bytes.
type Usage struct {
	Used       int64 // capacity of buffers
	Reserved   int64 // granted and not allocated
	Peak       int64 // highest sum of both so far
	Limit      int64 // math.MaxInt64 when unlimited
	Overbooked int64 // granted above the limit so far, by Overbook
	Held       [NumHolders]int64
}

// Waiting is the calls that wait for memory.
type Waiting struct {
	Callers  int   // in Reserve
	Requests int   // from Request
	Smallest int64 // bytes of the smallest; 0 without one
}

var defaultOrder = [...]MemType{Device, Pinned, Host}

// NewResource returns one rank's accountant over an Arena of its own. dev nil:
// host only, and nothing else is possible in this build. A store is kept, but
// nothing is spilled to it yet. The ranks of one process share one Arena:
// Arena.NewResource.
func NewResource(dev *cuda.Device, store Store, cfg Config) (*Resource, error) {
	return NewArena().NewResource(dev, store, cfg)
}

// NewResource returns one rank's accountant over a.
func (a *Arena) NewResource(dev *cuda.Device, store Store, cfg Config) (*Resource, error) {
	limits, alignment, err := cfg.resolve()
	if err != nil {
		return nil, fmt.Errorf("buffer: configure: %w", err)
	}
	if dev != nil {
		return nil, fmt.Errorf("buffer: configure: %w", errNoTier(Device))
	}
	r := &Resource{arena: a, small: &smallBlocks{arena: a}, store: store, alignment: alignment, patience: cfg.MemoryWait}
	for t, limit := range limits {
		r.mu.types[t].limit = limit
	}
	a.join(limits[Host])
	return r, nil
}

// blockSize returns what a buffer of n bytes is charged.
func (r *Resource) blockSize(n int64) int64 {
	if n > defaultAlignment && r.alignment > defaultAlignment && n <= maxSize {
		n = roundUp(n, powerOfTwo(min(n, r.alignment)))
	}
	return BlockSize(n)
}

// Reserve claims memory for a buffer of size bytes, that is BlockSize(size), of
// the first type in order that has it (default Device, Pinned, Host). If none
// has, it waits until ctx ends or Config.MemoryWait is over. The waiting call
// with the smallest size is served first, of several the oldest; receive
// requests (Request) get at least every second grant that either could have;
// one that has waited for a second is served before all others and collects
// what is released. The error matches ErrTooLarge if no type in order could ever
// hold it, and is a *NoMemoryError when MemoryWait is over.
func (r *Resource) Reserve(ctx context.Context, size int64, order ...MemType) (*Reservation, error) {
	claim, err := r.newClaim(size, order)
	if err != nil {
		return nil, err
	}
	v, err := r.grantNow(claim)
	if v != nil || err != nil {
		return v, err
	}
	return r.await(ctx, claim)
}

// TryReserve is Reserve that neither spills nor waits.
func (r *Resource) TryReserve(size int64, order ...MemType) (*Reservation, bool) {
	claim, err := r.newClaim(size, order)
	if err != nil {
		return nil, false
	}
	v, err := r.grantNow(claim)
	return v, v != nil && err == nil
}

// Overbook grants size bytes of t even above the limit. over is how many of
// them are.
func (r *Resource) Overbook(size int64, t MemType) (res *Reservation, over int64) {
	invariant.Check(size >= 0 && t < NumMemTypes, "buffer: overbook %d bytes of %s", size, t)
	n := r.blockSize(size)
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.mu.types[t]
	a.add(n, HeldByCaller)
	over = min(n, max(0, a.total-a.limit))
	a.overbooked += over
	r.mu.version++
	return &Reservation{res: r, left: n, typ: t}, over
}

// claim is a checked request for memory.
type claim struct {
	size  int64 // bytes, a block size
	order [NumMemTypes]MemType
	types int // of order
}

func (r *Resource) newClaim(size int64, order []MemType) (claim, error) {
	c := claim{size: r.blockSize(size)}
	if size < 0 {
		return c, fmt.Errorf("buffer: reserve %d bytes: negative", size)
	}
	if len(order) == 0 {
		order = defaultOrder[:]
	}
	for _, t := range order {
		if t >= NumMemTypes {
			return c, fmt.Errorf("buffer: reserve %s: unknown %s", formatBytes(size), t)
		}
		if !slices.Contains(c.order[:c.types], t) {
			c.order[c.types] = t
			c.types++
		}
	}
	return c, nil
}

// grantNow returns a Reservation if there is room, nil if there is not, an
// error if there never will be.
func (r *Resource) grantNow(c claim) (*Reservation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.placeLocked(&c, false); ok && !r.mu.closed {
		return r.grantLocked(&c, t), nil
	}
	return nil, r.hopelessLocked(&c)
}

// placeLocked returns the first type that has room for c. Only the waiter that
// collects may use what is kept for it.
func (r *Resource) placeLocked(c *claim, collects bool) (MemType, bool) {
	if c.size == 0 {
		return r.likelyLocked(c), true
	}
	for _, t := range c.order[:c.types] {
		a := &r.mu.types[t]
		room := a.available()
		if collects {
			room += a.kept
		}
		if c.size <= room {
			return t, true
		}
	}
	return 0, false
}

func (r *Resource) grantLocked(c *claim, t MemType) *Reservation {
	r.mu.types[t].add(c.size, HeldByCaller)
	r.mu.version++
	return &Reservation{res: r, left: c.size, typ: t}
}

// hopelessLocked returns why c can never be granted, or nil.
func (r *Resource) hopelessLocked(c *claim) error {
	if r.mu.closed {
		return fmt.Errorf("buffer: reserve %s: %w", formatBytes(c.size), ErrClosed)
	}
	t := r.likelyLocked(c)
	if limit := r.mu.types[t].limit; c.size > limit {
		return fmt.Errorf("buffer: reserve %s: %w (%s limit %s)", formatBytes(c.size), ErrTooLarge, t, formatBytes(limit))
	}
	return nil
}

// likelyLocked returns the type in c's order with the highest limit, the last
// of several: where c ends up when all are short.
func (r *Resource) likelyLocked(c *claim) MemType {
	best := c.order[0]
	for _, t := range c.order[1:c.types] {
		if r.mu.types[t].limit >= r.mu.types[best].limit {
			best = t
		}
	}
	return best
}

// release gives n bytes of t back, held by h, and serves who waits for them.
// reserved of them were not allocated.
func (r *Resource) release(t MemType, n, reserved int64, h Holder) {
	r.mu.Lock()
	a := &r.mu.types[t]
	a.total -= n
	a.held[h] -= n
	if reserved != 0 {
		a.reserved.Add(-reserved)
	}
	r.mu.version++
	if invariant.Enabled {
		invariant.Check(a.total >= 0 && a.held[h] >= 0 && a.reserved.Load() >= 0,
			"buffer: %s account below zero: %d bytes, %s %d, reserved %d", t, a.total, h, a.held[h], a.reserved.Load())
	}
	if r.mu.waiting.oldest == nil {
		r.mu.Unlock()
		return
	}
	r.collectLocked(t, n)
	settled := r.serveLocked()
	r.mu.Unlock()
	deliver(settled)
}

// unuse gives the charge of a buffer back.
func (r *Resource) unuse(t MemType, n int64, h Holder) {
	if n == 0 {
		r.empty.Add(-1)
		return
	}
	r.release(t, n, 0, h)
}

// reholdBlock makes h the holder of a block, whose views may be used by several
// goroutines.
func (r *Resource) reholdBlock(block *Buffer, h Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reholdLocked(block.typ, block.charge, block.holder, h)
	block.holder = h
}

// rehold moves n bytes of t from one holder to another.
func (r *Resource) rehold(t MemType, n int64, from, to Holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reholdLocked(t, n, from, to)
}

func (r *Resource) reholdLocked(t MemType, n int64, from, to Holder) {
	r.mu.types[t].held[from] -= n
	r.mu.types[t].held[to] += n
	r.mu.version++
}

// SetLimit changes the limit of t at once. Below what is in use Available gets
// negative. Calls that wait for more than any limit left end with ErrTooLarge.
func (r *Resource) SetLimit(t MemType, l Limit) error {
	limit, err := l.resolve(t)
	if err != nil {
		return fmt.Errorf("buffer: set limit %s of %s: %w", l, t, err)
	}
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return fmt.Errorf("buffer: set limit %s of %s: %w", l, t, ErrClosed)
	}
	a := &r.mu.types[t]
	old := a.limit
	a.limit = limit
	a.kept = max(0, min(a.kept, limit-a.total))
	r.mu.version++
	settled := append(r.rejectLocked(), r.serveLocked()...)
	if t == Host {
		defer r.arena.relimit(old, limit)
	}
	r.mu.Unlock()
	deliver(settled)
	return nil
}

// Available returns the limit of t less what is used and reserved, in bytes; it
// may be negative.
func (r *Resource) Available(t MemType) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.types[t].limit - r.mu.types[t].total
}

// Largest returns the size in bytes of the largest buffer that any type of the
// default order could ever hold; math.MaxInt64 without a limit.
func (r *Resource) Largest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var largest int64
	for _, t := range defaultOrder {
		largest = max(largest, r.mu.types[t].limit)
	}
	return largest
}

// Usage returns the account of t.
func (r *Resource) Usage(t MemType) Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.mu.types[t]
	reserved := a.reserved.Load()
	return Usage{Used: a.total - reserved, Reserved: reserved, Peak: a.peak, Limit: a.limit,
		Overbooked: a.overbooked, Held: a.held}
}

// Version changes whenever bytes are granted, released, handed over or change
// their holder, or a call starts or stops waiting for them.
func (r *Resource) Version() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.version
}

// Copied returns the payload bytes that Move has copied into buffers charged
// here.
func (r *Resource) Copied() int64 { return r.copied.Load() }

// NoMemory returns the error for want bytes of t that cannot be had, with the
// current numbers. An empty hint names the Config field to raise.
func (r *Resource) NoMemory(t MemType, want int64, hint string) *NoMemoryError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noMemoryLocked(t, want, hint)
}

func (r *Resource) noMemoryLocked(t MemType, want int64, hint string) *NoMemoryError {
	a := &r.mu.types[t]
	e := &NoMemoryError{Type: t, Want: want, Limit: a.limit, Used: a.total, Hint: hint}
	if hint == "" {
		e.Hint = "raise Config.Limits of " + t.String() + " memory"
	}
	for h, n := range a.held {
		if n > 0 {
			e.Holders = append(e.Holders, Held{Holder(h).String(), n})
		}
	}
	slices.SortStableFunc(e.Holders, func(x, y Held) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return e
}

// Close ends the account. It fails with ErrInUse while buffers or reservations
// are alive; a second call does nothing. Nobody can be waiting by then.
func (r *Resource) Close() error {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return nil
	}
	var used, reserved int64
	for t := range r.mu.types {
		n := r.mu.types[t].reserved.Load()
		used += r.mu.types[t].total - n
		reserved += n
	}
	if empty := r.empty.Load(); used > 0 || reserved > 0 || empty > 0 {
		r.mu.Unlock()
		return fmt.Errorf("buffer: close: %w: %s in buffers, %s reserved, %d empty buffers%s",
			ErrInUse, formatBytes(used), formatBytes(reserved), empty, r.made.report())
	}
	r.mu.closed = true
	limit := r.mu.types[Host].limit
	r.mu.Unlock()
	r.arena.leave(limit)
	return nil
}
