package shuffle

import (
	"errors"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// handler is the comm.Handler of a shuffle. Its methods run under the progress
// baton; they are kept off the public type.
type handler ShufflerAsync

func (h *handler) shuffler() *ShufflerAsync { return (*ShufflerAsync)(h) }

func (h *handler) Next(dst comm.Rank, room int, ms []comm.Message) []comm.Message {
	s := h.shuffler()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.e.queued
	ms = s.e.next(dst, room, ms)
	if was > s.full && s.e.queued <= s.full {
		s.port.Signal()
	}
	return ms
}

func (h *handler) Deliver(src comm.Rank, seq uint64, m comm.Message) {
	s := h.shuffler()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.closed {
		if m.Data != nil {
			m.Data.Release()
		}
		return
	}
	before := len(s.e.ready)
	var err error
	if m.Control {
		err = s.e.gotFinish(src, m.Meta)
	} else if err = s.e.deliver(src, seq, m); err != nil && m.Data != nil {
		m.Data.Release()
	}
	if err != nil || m.Control || len(s.e.ready) > before {
		s.progressLocked(err)
	}
}

// Batch queues the batch behind those that wait for slabs; each is taken apart
// once its slabs are there.
func (h *handler) Batch(src comm.Rank, b *comm.Batch) {
	s := h.shuffler()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.closed {
		b.Release()
		return
	}
	s.batches = append(s.batches, inBatch{src, b})
	if len(s.batches) == 1 {
		s.unpackLocked(nil)
	}
}

// unpackLocked takes waiting batches apart as far as memory allows. res is
// memory that was granted for the first of them.
func (s *ShufflerAsync) unpackLocked(res *buffer.Reservation) {
	before := len(s.e.ready)
	for len(s.batches) > 0 {
		in := s.batches[0]
		plan, err := s.e.plan(in.src, in.b)
		if err == nil && res == nil {
			var ok bool
			if res, ok = s.mem.TryReserve(plan.total, buffer.Host); !ok {
				s.askLocked(plan.total)
				break
			}
		}
		if err == nil {
			res.SetHolder(buffer.HeldReceived)
			err = s.e.unpack(in.src, in.b, plan, res)
		}
		if res != nil {
			res.Release()
			res = nil
		}
		in.b.Release()
		s.batches[0] = inBatch{}
		s.batches = s.batches[1:]
		if err != nil {
			s.progressLocked(err)
			return
		}
	}
	if len(s.e.ready) > before {
		s.progressLocked(nil)
	}
}

// askLocked queues a request for the slabs of the first batch.
func (s *ShufflerAsync) askLocked(n int64) {
	s.cancel = s.port.Request(s.mem, n, s.granted)
}

func (s *ShufflerAsync) granted(res *buffer.Reservation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = nil
	switch {
	case len(s.batches) == 0: // dropped meanwhile
		if res != nil {
			res.Release()
		}
	case err != nil:
		if errors.Is(err, buffer.ErrTooLarge) {
			err = s.mem.NoMemory(buffer.Host, 0, "raise the limit of this rank or use fewer partitions")
		}
		s.port.Abort(err)
	default:
		s.unpackLocked(res)
	}
}

// Stalled: see comm.Handler.
func (h *handler) Stalled(blocked bool) bool {
	s := h.shuffler()
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.e.finished || blocked || s.blocked > 0) && !s.e.waiting()
}

func (h *handler) Fail(err error) {
	s := h.shuffler()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete {
		s.e.out.Drop() // what is here stays valid; what others miss, they miss
		return
	}
	if s.err != nil {
		return
	}
	s.err = err
	s.dropLocked()
	s.port.Signal()
}
