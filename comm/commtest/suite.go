package commtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// Ranks are the job sizes that the suite runs with.
var Ranks = []int{1, 2, 3, 5, 8}

// Run runs the whole suite.
func Run(t *testing.T, connect Connect) {
	for _, s := range []struct {
		name string
		fn   func(*testing.T, Connect, int)
	}{
		{"Barrier", barrier},
		{"Mail", mailAll},
		{"PipeSizes", pipeSizes},
		{"ControlAndLongMeta", longMeta},
		{"ManySmall", manySmall},
		{"Mismatch", mismatch},
		{"ReuseOp", reuseOp},
		{"OpenOrder", openOrder},
		{"AbortOp", abortOp},
		{"AbortJob", abortJob},
		{"PeerGone", peerGone},
	} {
		t.Run(s.name, func(t *testing.T) {
			for _, n := range Ranks {
				t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) { s.fn(t, connect, n) })
			}
		})
	}
	t.Run("Parking", func(t *testing.T) { parking(t, connect) })
	t.Run("TwoOpsAtOnce", func(t *testing.T) { twoOps(t, connect) })
	t.Run("Starved", func(t *testing.T) { starved(t, connect) })
	t.Run("StarvedAfterOneLeft", func(t *testing.T) { starvedAfterOneLeft(t, connect) })
	t.Run("SlowConsumerIsNotStarved", func(t *testing.T) { slowConsumer(t, connect) })
	t.Run("CloseWithOpenOp", func(t *testing.T) { closeInUse(t, connect) })
	t.Run("CloseEndsWaits", func(t *testing.T) { closeEndsWaits(t, connect) })
	t.Run("WaitEndsWithContext", func(t *testing.T) { waitContext(t, connect) })
}

// barrier: nobody leaves before everybody has come, many times over.
func barrier(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	const rounds = 20
	at := make([]chan int, n)
	for r := range at {
		at[r] = make(chan int, rounds)
	}
	j.Each(func(r comm.Rank, c *comm.Communicator) error {
		for i := range rounds {
			at[r] <- i
			if err := c.Barrier(j.Ctx); err != nil {
				return err
			}
			for s := range at {
				if len(at[s]) <= i {
					return fmt.Errorf("left barrier %d before rank %d came", i, s)
				}
			}
			if err := c.Barrier(j.Ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// mailAll: every rank sends messages of many sizes to every rank, itself
// included (rows C2, M2, M4, M5, M6), and receives them in order per tag.
func mailAll(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	sizes := []int64{0, 1, 10, 512, 1024, 2048, 100_000}
	if n <= 3 {
		sizes = append(sizes, 5<<20) // more than one segment
	}
	key := func(src, dst comm.Rank, tag uint32, i int) uint64 {
		return uint64(src)<<48 | uint64(dst)<<32 | uint64(tag)<<16 | uint64(i)
	}
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		mail := c.Mailbox()
		for i, size := range sizes {
			for dst := range comm.Rank(n) {
				for tag := range uint32(2) {
					p, err := Pack(j.Ctx, j.Mem[me], key(me, dst, tag, i), size)
					if err != nil {
						return err
					}
					if err := mail.Send(j.Ctx, dst, tag, p); err != nil {
						return err
					}
				}
			}
		}
		for src := range comm.Rank(n) {
			for tag := range uint32(2) {
				for i, size := range sizes {
					p, err := mail.Recv(j.Ctx, src, 1-tag)
					if err != nil {
						return err
					}
					if err := Check(j.Ctx, p, key(src, me, 1-tag, i), size); err != nil {
						return fmt.Errorf("from %d, tag %d, message %d: %w", src, 1-tag, i, err)
					}
					p.Release()
				}
			}
		}
		return c.Barrier(j.Ctx)
	})
}

// pipes opens one pipe on every rank, runs fn, and closes them.
func pipes(j *Job, op comm.OpID, fn func(r comm.Rank, p *Pipe) error) {
	j.T.Helper()
	j.Each(func(r comm.Rank, c *comm.Communicator) error {
		p, err := OpenPipe(c, j.Mem[c.Rank()], op)
		if err != nil {
			return err
		}
		err = fn(r, p)
		p.Port.Complete()
		p.Port.Close(errors.New("pipe closed"))
		return err
	})
}

// pipeSizes: payloads of one byte to several segments, each once and whole,
// numbered per source.
func pipeSizes(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{Limit: buffer.Bytes(256 << 20)})
	sizes := []int64{0, 1, 1023, 1025, 64 << 10, 64<<10 + 1, 1 << 20}
	if n <= 3 {
		sizes = append(sizes, 9<<20+5)
	}
	pipes(j, 7, func(me comm.Rank, p *Pipe) error {
		for i, size := range sizes {
			for dst := range comm.Rank(n) {
				if dst == me {
					continue
				}
				d, err := Pack(j.Ctx, j.Mem[me], uint64(me)<<8|uint64(i), size)
				if err != nil {
					return err
				}
				p.Push(dst, uint32(i), d)
			}
			// Take as we go, so that the limit holds.
			got, err := p.Recv(j.Ctx, n-1)
			if err != nil {
				return err
			}
			for _, g := range got {
				if g.Seq != uint64(g.Part) {
					return fmt.Errorf("message %d from %d carries part %d", g.Seq, g.Src, g.Part)
				}
				if err := Check(j.Ctx, g.Data, uint64(g.Src)<<8|uint64(g.Part), sizes[g.Part]); err != nil {
					return err
				}
				g.Data.Release()
			}
		}
		return nil
	})
}

// longMeta: metadata below, at and far above what one frame carries, with and
// without payload, as data and as control.
func longMeta(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	lens := []int{0, 1, 8127, 8128, 8129, 100_000, 1 << 20}
	pipes(j, 3, func(me comm.Rank, p *Pipe) error {
		for i, l := range lens {
			meta := []byte(strings.Repeat(string(rune('a'+i)), l))
			for dst := range comm.Rank(n) {
				if dst == me {
					continue
				}
				d, err := Pack(j.Ctx, j.Mem[me], 1, 5000)
				if err != nil {
					return err
				}
				d.Meta = meta
				p.Push(dst, uint32(i), d)
				p.PushControl(dst, meta)
			}
		}
		got, err := p.Recv(j.Ctx, 2*len(lens)*(n-1))
		if err != nil {
			return err
		}
		seen := map[comm.Rank][]int{}
		for _, g := range got {
			if l := len(g.Data.Meta); l > 0 && strings.Trim(string(g.Data.Meta), string(g.Data.Meta[:1])) != "" {
				return errors.New("metadata is damaged")
			}
			if g.Control == (g.Data.Data != nil) {
				return errors.New("payload on a control message, or none on a data message")
			}
			seen[g.Src] = append(seen[g.Src], len(g.Data.Meta))
			g.Data.Release()
		}
		for src, s := range seen {
			slices.Sort(s)
			for i, l := range s {
				if l != lens[i/2] {
					return fmt.Errorf("lengths from %d: %v", src, s)
				}
			}
		}
		return nil
	})
}

// manySmall: batches are taken apart in order and nothing is lost or doubled.
func manySmall(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	const count = 3000
	pipes(j, 4, func(me comm.Rank, p *Pipe) error {
		for i := range count {
			for dst := range comm.Rank(n) {
				if dst != me {
					p.Push(dst, uint32(i), &buffer.PackedData{Meta: fmt.Appendf(nil, "%d:%d", me, i)})
				}
			}
		}
		got, err := p.Recv(j.Ctx, count*(n-1))
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, g := range got {
			want := fmt.Sprintf("%d:%d", g.Src, g.Part)
			if string(g.Data.Meta) != want || seen[want] || g.Seq != uint64(g.Part) {
				return fmt.Errorf("message %d from %d is %q, part %d", g.Seq, g.Src, g.Data.Meta, g.Part)
			}
			seen[want] = true
		}
		return nil
	})
}

// mismatch: one rank that differs is an error on all, naming the difference.
func mismatch(t *testing.T, connect Connect, n int) {
	if n == 1 {
		return
	}
	j := NewJob(t, connect, n, Options{})
	errs := j.Try(func(r comm.Rank, c *comm.Communicator) error {
		v := "10"
		if int(r) == n-1 {
			v = "11"
		}
		p, err := OpenPipe(c, j.Mem[c.Rank()], 5, comm.Param{Key: "parts", Value: v})
		if err != nil {
			return err
		}
		_, err = p.Recv(j.Ctx, 1)
		p.Port.Close(errors.New("done"))
		return err
	})
	for r, err := range errs {
		var m *comm.MismatchError
		var pe *comm.PeerError
		if !errors.As(err, &m) || !errors.As(err, &pe) || !strings.Contains(err.Error(), "parts: 1") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// reuseOp: an id is opened again at once while others are still in the round
// before; rounds do not mix.
func reuseOp(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	for round := range 5 {
		pipes(j, 9, func(me comm.Rank, p *Pipe) error {
			for dst := range comm.Rank(n) {
				if dst != me {
					p.Push(dst, uint32(round), &buffer.PackedData{Meta: []byte{byte(round)}})
				}
			}
			got, err := p.Recv(j.Ctx, n-1)
			for _, g := range got {
				if g.Part != uint32(round) {
					return fmt.Errorf("round %d got a message of round %d", round, g.Part)
				}
			}
			return err
		})
	}
}

// openOrder: ranks open two operations in opposite order, and each fills one
// before it opens the other.
func openOrder(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		ops := []comm.OpID{20, 21}
		if me%2 == 1 {
			slices.Reverse(ops)
		}
		var open []*Pipe
		for _, op := range ops {
			p, err := OpenPipe(c, j.Mem[c.Rank()], op)
			if err != nil {
				return err
			}
			open = append(open, p)
			for dst := range comm.Rank(n) {
				for i := range 20 {
					if dst == me {
						continue
					}
					d, err := Pack(j.Ctx, j.Mem[me], uint64(i), 100_000)
					if err != nil {
						return err
					}
					p.Push(dst, 0, d)
				}
			}
		}
		for _, p := range open {
			got, err := p.Recv(j.Ctx, 20*(n-1))
			if err != nil {
				return err
			}
			for _, g := range got {
				g.Data.Release()
			}
			p.Port.Complete()
			p.Port.Close(nil)
		}
		return nil
	})
}

// abortOp: one rank gives up; all others learn the cause, nothing leaks, and
// the job goes on.
func abortOp(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	cause := &buffer.CorruptError{Where: "test", Offset: 42}
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		p, err := OpenPipe(c, j.Mem[c.Rank()], 6)
		if err != nil {
			return err
		}
		for dst := range comm.Rank(n) {
			if dst != me {
				d, err := Pack(j.Ctx, j.Mem[me], 1, 1<<20)
				if err != nil {
					return err
				}
				p.Push(dst, 0, d)
			}
		}
		if me == 0 {
			p.Port.Abort(cause)
		}
		_, err = p.Recv(j.Ctx, 1<<30)
		p.Port.Close(errors.New("done"))
		return err
	})
	for r, err := range errs {
		var ce *buffer.CorruptError
		var pe *comm.PeerError
		if !errors.As(err, &pe) || pe.Rank != 0 || !errors.As(err, &ce) || ce.Offset != 42 {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	j.Each(func(_ comm.Rank, c *comm.Communicator) error { return c.Barrier(j.Ctx) })
}

// abortJob: every wait on every rank ends with the cause, and so does every
// later call.
func abortJob(t *testing.T, connect Connect, n int) {
	j := NewJob(t, connect, n, Options{})
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		if int(me) == n-1 {
			c.Abort(&buffer.NoMemoryError{Type: buffer.Host, Want: 7})
		}
		_, err := c.Mailbox().Recv(j.Ctx, me, 1)
		return err
	})
	for r, err := range errs {
		var no *buffer.NoMemoryError
		var pe *comm.PeerError
		if !errors.As(err, &pe) || int(pe.Rank) != n-1 || !errors.As(err, &no) || no.Want != 7 {
			t.Errorf("rank %d: %v", r, err)
		}
		if _, err := OpenPipe(j.Comm[r], j.Mem[r], 1); !errors.As(err, &pe) {
			t.Errorf("rank %d: open after abort: %v", r, err)
		}
	}
}

// peerGone: a rank that leaves without goodbye is an error on all others.
func peerGone(t *testing.T, connect Connect, n int) {
	if n == 1 {
		return
	}
	j := NewJob(t, connect, n, Options{})
	gone, cancel := context.WithCancel(j.Ctx)
	cancel()
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		if err := c.Barrier(j.Ctx); err != nil {
			return err
		}
		if me == 0 {
			return c.Close(gone)
		}
		_, err := c.Mailbox().Recv(j.Ctx, 0, 1)
		return err
	})
	for r, err := range errs[1:] {
		var pe *comm.PeerError
		if !errors.As(err, &pe) {
			t.Errorf("rank %d: %v", r+1, err)
		}
	}
	if !errors.Is(errs[0], context.Canceled) {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// waitContext: the end of a context ends only that wait.
func waitContext(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 2, Options{})
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		short, cancel := context.WithTimeout(j.Ctx, time.Millisecond)
		defer cancel()
		if _, err := c.Mailbox().Recv(short, 1-me, 1); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("receive with a short context: %v", err)
		}
		return c.Barrier(j.Ctx)
	})
}

// closeEndsWaits: calls that wait while their rank is closed end, and so does
// every call after it.
func closeEndsWaits(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 2, Options{})
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		ended := make(chan error, 3)
		go func() { _, err := c.Mailbox().Recv(j.Ctx, me, 9); ended <- err }()
		go func() { _, err := c.Mailbox().Recv(j.Ctx, 1-me, 9); ended <- err }()
		if me == 0 {
			go func() { ended <- c.Barrier(j.Ctx) }()
		} else {
			ended <- comm.ErrClosed
		}
		if err := c.Close(j.Ctx); err != nil && !errors.As(err, new(*comm.PeerError)) {
			return err
		}
		for range 3 {
			if err := <-ended; !errors.Is(err, comm.ErrClosed) && !errors.As(err, new(*comm.PeerError)) {
				return fmt.Errorf("a wait ended with %v", err)
			}
		}
		if _, err := c.Mailbox().Recv(j.Ctx, 1-me, 1); err == nil {
			return errors.New("receive after close")
		}
		if err := c.Barrier(j.Ctx); err == nil {
			return errors.New("barrier after close")
		}
		if _, err := c.Stats(j.Ctx); !errors.Is(err, comm.ErrClosed) {
			return fmt.Errorf("statistics after close: %v", err)
		}
		return c.Close(j.Ctx)
	})
}

// closeInUse: Close with an open operation changes nothing.
func closeInUse(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 2, Options{})
	pipes(j, 2, func(me comm.Rank, p *Pipe) error {
		if err := j.Comm[me].Close(j.Ctx); !errors.Is(err, comm.ErrInUse) {
			return fmt.Errorf("close: %v", err)
		}
		if _, err := OpenPipe(j.Comm[me], j.Mem[me], 2); !errors.Is(err, comm.ErrOpInUse) {
			return fmt.Errorf("second open: %v", err)
		}
		return nil
	})
}
