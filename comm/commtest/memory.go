package commtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// parking: a receiver without memory leaves the bytes at the sender, stays
// below its limit, and takes them as it frees memory.
func parking(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 2, Options{Limit: buffer.Bytes(4 << 20)})
	const count, size = 40, 512 << 10
	pipes(j, 1, func(me comm.Rank, p *Pipe) error {
		if me == 0 {
			for i := range count {
				d, err := Pack(j.Ctx, j.Mem[0], uint64(i), size)
				if err != nil {
					return err
				}
				p.Push(1, uint32(i), d)
			}
			return nil
		}
		p.SetBusy(true)
		for range count {
			got, err := p.Recv(j.Ctx, 1)
			if err != nil {
				return err
			}
			if err := Check(j.Ctx, got[0].Data, uint64(got[0].Part), size); err != nil {
				return err
			}
			got[0].Data.Release()
		}
		return nil
	})
	for r, mem := range j.Mem {
		if u := mem.Usage(buffer.Host); u.Peak > u.Limit {
			t.Errorf("rank %d: peak %d above the limit of %d", r, u.Peak, u.Limit)
		}
	}
}

// twoOps: several operations share the windows and both finish.
func twoOps(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 3, Options{})
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		var open []*Pipe
		for op := range comm.OpID(4) {
			p, err := OpenPipe(c, j.Mem[c.Rank()], op)
			if err != nil {
				return err
			}
			open = append(open, p)
		}
		for i := range 50 {
			for op, p := range open {
				for dst := range comm.Rank(3) {
					if dst == me {
						continue
					}
					d, err := Pack(j.Ctx, j.Mem[me], uint64(op*1000+i), 10_000)
					if err != nil {
						return err
					}
					p.Push(dst, uint32(op), d)
				}
			}
		}
		for op, p := range open {
			got, err := p.Recv(j.Ctx, 100)
			if err != nil {
				return err
			}
			for _, g := range got {
				if g.Part != uint32(op) {
					return fmt.Errorf("operation %d got a message of %d", op, g.Part)
				}
				g.Data.Release()
			}
			p.Port.Complete()
			p.Port.Close(nil)
		}
		return nil
	})
}

// starved: every rank fills the others and takes nothing; all end with an
// error that says what to change.
func starved(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 3, Options{Limit: buffer.Bytes(2 << 20)})
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		p, err := OpenPipe(c, j.Mem[c.Rank()], 1)
		if err != nil {
			return err
		}
		defer p.Port.Close(errors.New("done"))
		for i := range uint64(1000) {
			d, err := Pack(j.Ctx, j.Mem[me], i, 128<<10)
			if err != nil {
				return err
			}
			if p.Failure() != nil {
				d.Release()
				return p.Failure()
			}
			p.Push((me+1+comm.Rank(i)%2)%3, 0, d)
		}
		return errors.New("everything fitted")
	})
	for r, err := range errs {
		var no *buffer.NoMemoryError
		if !errors.As(err, &no) || no.Hint == "" {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	j.Each(func(_ comm.Rank, c *comm.Communicator) error { return c.Barrier(j.Ctx) })
}

// starvedAfterOneLeft: the same among the ranks that are left when one has gone
// home early.
func starvedAfterOneLeft(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 3, Options{Limit: buffer.Bytes(2 << 20)})
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		p, err := OpenPipe(c, j.Mem[me], 1)
		if err != nil {
			return err
		}
		if me == 2 {
			p.Port.Complete()
			p.Port.Close(nil)
			return c.Close(j.Ctx)
		}
		defer func() { _ = c.Close(j.Ctx) }()
		defer p.Port.Close(errors.New("done"))
		for i := range uint64(1000) {
			d, err := Pack(j.Ctx, j.Mem[me], i, 128<<10)
			if err != nil {
				return err
			}
			p.Push(1-me, 0, d)
			if err := p.Failure(); err != nil {
				return err
			}
		}
		return errors.New("everything fitted")
	})
	for r, err := range errs[:2] {
		if !errors.As(err, new(*buffer.NoMemoryError)) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if errs[2] != nil {
		t.Errorf("rank 2: %v", errs[2])
	}
}

// slowConsumer: a rank that holds what it received and may still free it keeps
// the others waiting, not failing.
func slowConsumer(t *testing.T, connect Connect) {
	j := NewJob(t, connect, 2, Options{Limit: buffer.Bytes(2 << 20)})
	pipes(j, 1, func(me comm.Rank, p *Pipe) error {
		const count, size = 64, 128 << 10
		if me == 0 {
			for i := range count {
				d, err := Pack(j.Ctx, j.Mem[0], uint64(i), size)
				if err != nil {
					return err
				}
				p.Push(1, uint32(i), d)
			}
			return j.Comm[0].Barrier(j.Ctx)
		}
		p.SetBusy(true)
		// Let rank 0 fill both sides and wait.
		first, err := p.Recv(j.Ctx, 8)
		if err != nil {
			return err
		}
		for range 100 {
			if s, err := j.Comm[1].Stats(j.Ctx); err != nil || s.Parked > 0 {
				break
			}
		}
		for _, g := range first {
			g.Data.Release()
		}
		for range count - len(first) {
			got, err := p.Recv(j.Ctx, 1)
			if err != nil {
				return err
			}
			got[0].Data.Release()
		}
		return j.Comm[1].Barrier(j.Ctx)
	})
}
