package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// ShufflerAsync is one shuffle on one rank. Its methods may be called from
// several goroutines.
type ShufflerAsync struct {
	port *comm.Port
	mem  *buffer.Resource
	self comm.Rank
	full int64 // queued bytes at which Insert waits
	gone chan struct{}

	mu       sync.Mutex
	e        *engine
	blocked  int       // calls of Insert that wait for room
	batches  []inBatch // arrived, waiting for slabs in arrival order
	cancel   func()    // of the memory request for the first of batches
	complete bool      // everything is here and everything is inserted
	closed   bool
	err      error
}

// inBatch is a batch that has arrived.
type inBatch struct {
	src comm.Rank
	b   *comm.Batch
}

// New joins one shuffle; every rank calls it with an equal Config. It is used
// once: Insert…, InsertFinished, then NextPartition/Extract… or Wait, Close.
func New(c *comm.Communicator, mem *buffer.Resource, cfg Config) (*ShufflerAsync, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("shuffle: new: %w", err)
	}
	owner := make([]comm.Rank, cfg.Parts)
	place := cfg.Owner
	if place == nil {
		place = RoundRobin
	}
	for p := range owner {
		r := place(PartID(p), cfg.Parts, c.Size())
		if r < 0 || int(r) >= c.Size() {
			return nil, fmt.Errorf("shuffle: new: owner of partition %d is rank %d of %d", p, r, c.Size())
		}
		owner[p] = r
	}
	s := &ShufflerAsync{
		mem: mem, self: c.Rank(), full: cfg.OutgoingBytes,
		gone: make(chan struct{}),
		e:    newEngine(c.Rank(), c.Size(), owner, cfg.Order),
	}
	if s.full == 0 {
		s.full = maxOutgoing
		if l := mem.Usage(buffer.Host).Limit; l >= 0 && l < math.MaxInt64 {
			s.full = min(maxOutgoing, l/2)
		}
	}
	_, err := c.Open(cfg.Op, fingerprint(owner), func(p *comm.Port) comm.Handler {
		s.port = p
		return (*handler)(s)
	})
	if err != nil {
		return nil, fmt.Errorf("shuffle: new: %w", err)
	}
	return s, nil
}

// Insert accepts or rejects d before it waits. On a validation error (one that
// matches ErrInvalid, ErrFinished or buffer.ErrTooLarge) d is still the
// caller's, as with every error that does not match ErrAccepted. Once accepted
// it is queued and counted. Insert then blocks while too much is queued for
// other ranks; if ctx or the shuffle ends first, the error matches ErrAccepted
// and the chunk is no longer the caller's. A chunk with neither metadata nor payload is
// dropped; a payload without metadata is invalid.
func (s *ShufflerAsync) Insert(ctx context.Context, p PartID, d *buffer.PackedData) error {
	s.mu.Lock()
	if err := s.admitLocked(p, d); err != nil {
		s.mu.Unlock()
		return fmt.Errorf("shuffle: insert partition %d: %w", p, err)
	}
	s.insertLocked(p, d)
	full := s.e.queued > s.full
	s.mu.Unlock()
	if full {
		return s.drain(ctx, p)
	}
	return nil
}

// InsertMap inserts one chunk for each of several partitions, or none: all
// entries are validated first.
func (s *ShufflerAsync) InsertMap(ctx context.Context, chunks map[PartID]*buffer.PackedData) error {
	s.mu.Lock()
	for p, d := range chunks {
		if err := s.admitLocked(p, d); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("shuffle: insert partition %d: %w", p, err)
		}
	}
	for p, d := range chunks {
		s.insertLocked(p, d)
	}
	full := s.e.queued > s.full
	s.mu.Unlock()
	if full {
		return s.drain(ctx, 0)
	}
	return nil
}

func (s *ShufflerAsync) admitLocked(p PartID, d *buffer.PackedData) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.err != nil:
		return s.err
	case s.e.finished:
		return ErrFinished
	case int64(p) >= int64(len(s.e.owner)):
		return fmt.Errorf("%w: there are %d partitions", ErrInvalid, len(s.e.owner))
	case d == nil:
		return fmt.Errorf("%w: nil", ErrInvalid)
	case len(d.Meta) == 0 && d.Data != nil && d.Data.Len() > 0:
		return fmt.Errorf("%w: a payload without metadata", ErrInvalid)
	case len(d.Meta) > comm.MaxMeta:
		return fmt.Errorf("%w: metadata of %d bytes, at most %d", ErrInvalid, len(d.Meta), comm.MaxMeta)
	}
	if d.Data != nil {
		dst := s.e.owner[p]
		if c := s.port.Capacity(dst); c > 0 && d.Data.Len() > c && (dst != s.self || d.Data.Len() > s.mem.Largest()) {
			return fmt.Errorf("%w: %d bytes for rank %d, which can hold %d; send smaller chunks or raise its limit",
				buffer.ErrTooLarge, d.Data.Len(), dst, c)
		}
	}
	return nil
}

func (s *ShufflerAsync) insertLocked(p PartID, d *buffer.PackedData) {
	d = d.Take()
	if len(d.Meta) == 0 && (d.Data == nil || d.Data.Len() == 0) {
		d.Release()
		return
	}
	if dst := s.e.insert(p, d); dst != s.self {
		s.port.Notify(dst)
	}
}

// drain waits until there is room for more outgoing chunks.
func (s *ShufflerAsync) drain(ctx context.Context, p PartID) error {
	s.mu.Lock()
	s.blocked++
	s.mu.Unlock()
	err := s.await(ctx, fmt.Sprintf("insert partition %d", p), func() bool { return s.e.queued <= s.full && s.err == nil && !s.closed })
	s.mu.Lock()
	s.blocked--
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAccepted, err)
	}
	return nil
}

// InsertFinished says that this rank will insert nothing more. It is called
// once, after all Inserts returned.
func (s *ShufflerAsync) InsertFinished() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("shuffle: insert finished: %w", ErrClosed)
	case s.err != nil:
		return fmt.Errorf("shuffle: insert finished: %w", s.err)
	case s.e.finished:
		return fmt.Errorf("shuffle: insert finished: %w", ErrFinished)
	}
	to, err := s.e.finishInsert()
	for _, dst := range to {
		s.port.Notify(dst)
	}
	s.progressLocked(err)
	return nil
}

// progressLocked publishes what a step of the engine has changed. An error of
// the engine means that some rank broke the rules, and ends the shuffle.
func (s *ShufflerAsync) progressLocked(err error) {
	if err != nil {
		s.port.Abort(err)
		return
	}
	if s.e.done() && !s.complete {
		s.complete = true
		close(s.gone)
		s.port.Complete()
	}
	s.port.Signal()
}

// Done is closed when Wait would return without error.
func (s *ShufflerAsync) Done() <-chan struct{} { return s.gone }

// Wait returns once this rank has finished inserting and all its partitions are
// complete. From then on the operation id may be used again.
func (s *ShufflerAsync) Wait(ctx context.Context) error {
	return s.await(ctx, "wait", func() bool { return s.complete })
}

// await waits for a condition that is looked at under the lock, or for the end
// of the shuffle.
func (s *ShufflerAsync) await(ctx context.Context, act string, cond func() bool) error {
	var failed error
	err := s.port.Wait(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cond() {
			return true
		}
		failed = s.err
		if s.closed {
			failed = ErrClosed
		}
		return failed != nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("shuffle: %s: %w", act, err)
	}
	return nil
}

// NextPartition waits for the next complete local partition, in completion
// order. After the last it returns io.EOF. Each partition is returned once, to
// whichever caller comes first.
func (s *ShufflerAsync) NextPartition(ctx context.Context) (PartID, error) {
	var p PartID
	var end bool
	err := s.await(ctx, "next partition", func() bool {
		e := s.e
		if end = e.taken == len(e.local); end {
			return true
		}
		if s.closed || e.taken == len(e.ready) {
			return false
		}
		p = e.ready[e.taken]
		e.taken++
		return true
	})
	if err == nil && end {
		err = io.EOF
	}
	return p, err
}

// LocalPartitions returns the partitions that end on this rank, rising.
func (s *ShufflerAsync) LocalPartitions() []PartID {
	return append([]PartID(nil), s.e.local...)
}

// Stats returns what the shuffle has done so far.
func (s *ShufflerAsync) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.e.stats
	st.SentTo = append([]int64(nil), st.SentTo...)
	return st
}

var errGaveUp = errors.New("shuffle: closed before it was complete")

// Close releases what was not extracted. Before Done it ends the shuffle on all
// ranks with an error that names this one. It does not wait, and may be called
// again.
func (s *ShufflerAsync) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.complete {
		// Own chunks are all here; what is queued for others still goes out.
		for _, p := range s.e.index {
			p.release()
		}
	} else {
		s.dropLocked()
	}
	s.port.Close(errGaveUp)
	s.port.Signal()
	return nil
}

// dropLocked releases everything that the shuffle holds.
func (s *ShufflerAsync) dropLocked() {
	s.e.release()
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
	for _, in := range s.batches {
		in.b.Release()
	}
	s.batches = nil
}
