package shuffle_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/shuffle"
)

// TestStarved: four times the limit, no disk tier, nobody extracting. Every
// rank ends with an error that names the option, and nothing is leaked (NewJob
// checks that the accounts are empty).
func TestStarved(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		const limit, size = 4 << 20, 100_000
		j := commtest.NewJob(t, connect, n, commtest.Options{Limit: buffer.Bytes(limit)})
		errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 2 * n})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			if err := insert(j, s, me, 2*n, 4*limit/size/(2*n)+1, size); err != nil {
				return err
			}
			return s.Wait(j.Ctx)
		})
		for r, err := range errs {
			var no *buffer.NoMemoryError
			if !errors.As(err, &no) {
				t.Errorf("rank %d: %v", r, err)
				continue
			}
			if no.Limit != limit || !strings.Contains(err.Error(), "limit") || no.Hint == "" {
				t.Errorf("rank %d: unhelpful: %v", r, err)
			}
		}
		for r, mem := range j.Mem {
			if u := mem.Usage(buffer.Host); u.Peak > limit {
				t.Errorf("rank %d: peak of %d above the limit", r, u.Peak)
			}
		}
	})
}

// TestStarvedSmall is the same with chunks that travel in batches.
func TestStarvedSmall(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		const limit, size = 1 << 20, 500
		j := commtest.NewJob(t, connect, n, commtest.Options{Limit: buffer.Bytes(limit)})
		errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: n})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			if err := insert(j, s, me, n, 4*limit/size/n+1, size); err != nil {
				return err
			}
			return s.Wait(j.Ctx)
		})
		for r, err := range errs {
			var no *buffer.NoMemoryError
			if !errors.As(err, &no) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// TestStreamThroughLimit: far more than the limit passes if it is extracted as
// it becomes complete, shuffle by shuffle.
func TestStreamThroughLimit(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		const limit = 8 << 20
		j := commtest.NewJob(t, connect, n, commtest.Options{Limit: buffer.Bytes(limit)})
		j.Each(func(me comm.Rank, c *comm.Communicator) error {
			for range 8 {
				if err := run(j, me, c, shuffle.Config{Op: 1, Parts: 2 * n}, 1, limit/8/int64(n)/2); err != nil {
					return err
				}
			}
			return nil
		})
		for r, mem := range j.Mem {
			if u := mem.Usage(buffer.Host); u.Peak > limit {
				t.Errorf("rank %d: peak of %d above the limit", r, u.Peak)
			}
		}
	})
}

// TestSlowConsumer: a rank that has a complete partition and takes its time is
// waited for, even when everybody else is out of memory.
func TestSlowConsumer(t *testing.T) {
	const limit = 8 << 20
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{Limit: buffer.Bytes(limit)})
	toOne := func(shuffle.PartID, int, int) comm.Rank { return 1 }
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		first, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 1, Owner: toOne})
		if err != nil {
			return err
		}
		defer func() { _ = first.Close() }()
		if err := insert(j, first, me, 1, 6, 512<<10); err != nil {
			return err
		}
		if err := first.Wait(j.Ctx); err != nil {
			return err
		}
		// Rank 1 holds 6 MiB that it does not take yet; 6 MiB more do not fit.
		second, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 2, Parts: 1, Owner: toOne})
		if err != nil {
			return err
		}
		defer func() { _ = second.Close() }()
		if me == 0 {
			for i := range 6 {
				d, err := commtest.Pack(j.Ctx, j.Mem[0], key(0, 0, i), 1<<20)
				if err != nil {
					return err
				}
				if err := second.Insert(j.Ctx, 0, d); err != nil {
					return err
				}
			}
			return second.InsertFinished()
		}
		if err := second.InsertFinished(); err != nil {
			return err
		}
		for {
			st, err := c.Stats(j.Ctx)
			if err != nil {
				return err
			}
			if st.Parked > 0 {
				break
			}
		}
		if err := checkPartition(j, first, 0, 2, 6, 512<<10); err != nil {
			return err
		}
		n := 0
		for d, err := range second.Extract(j.Ctx, 0) {
			if err != nil {
				return err
			}
			d.Release()
			n++
		}
		if n != 6 {
			return fmt.Errorf("%d chunks", n)
		}
		return nil
	})
}

// TestHandOver: in-process ranks copy no payload, whatever its size above the
// coalescing threshold.
func TestHandOver(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			j := commtest.NewJob(t, inproc.New, n, commtest.Options{})
			j.Each(func(me comm.Rank, c *comm.Communicator) error {
				if err := run(j, me, c, shuffle.Config{Op: 1, Parts: 3 * n}, 2, 2<<20); err != nil {
					return err
				}
				st, err := c.Stats(j.Ctx)
				if err != nil {
					return err
				}
				if copied := j.Mem[me].Copied(); copied != 0 || st.PayloadCopies != 0 || st.CoalescedBytes != 0 {
					return fmt.Errorf("copied %d bytes, %d between ranks, %d into batches", copied, st.PayloadCopies, st.CoalescedBytes)
				}
				return nil
			})
		})
	}
}

// passOne sends the chunk that is made on rank 0 to rank 1, which checks its
// bytes.
func passOne(j *commtest.Job, made func() (*buffer.PackedData, error), check func(p []byte) error) {
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 2})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		if me == 0 {
			d, err := made()
			if err != nil {
				return err
			}
			if err := s.Insert(j.Ctx, 1, d); err != nil {
				return err
			}
		}
		if err := s.InsertFinished(); err != nil {
			return err
		}
		chunks := 0
		for d, err := range s.Extract(j.Ctx, shuffle.PartID(me)) {
			if err != nil {
				return err
			}
			err = d.Data.OnHost(j.Ctx, check)
			d.Release()
			if err != nil {
				return err
			}
			chunks++
		}
		if chunks != int(me) {
			return fmt.Errorf("%d chunks", chunks)
		}
		return s.Wait(j.Ctx)
	})
}

// TestOneHugeChunk: 5 GiB in one chunk. Only its ends are written, so that the
// pages between are never touched.
func TestOneHugeChunk(t *testing.T) {
	const size = 5 << 30
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{Limit: buffer.Bytes(6 << 30)})
	passOne(j, func() (*buffer.PackedData, error) {
		res, err := j.Mem[0].Reserve(j.Ctx, size, buffer.Host)
		if err != nil {
			return nil, err
		}
		defer res.Release()
		b, err := res.Alloc(size, nil)
		if err != nil {
			return nil, err
		}
		err = b.OnHost(j.Ctx, func(p []byte) error { p[0], p[size-1] = 11, 22; return nil })
		return &buffer.PackedData{Meta: []byte("huge"), Data: b}, err
	}, func(p []byte) error {
		if len(p) != size || p[0] != 11 || p[size-1] != 22 {
			return errors.New("the chunk is damaged")
		}
		return nil
	})
}

// TestViewOfLargeBlock: the last view of a block is a buffer like any other, and
// reaches another rank though its block is larger than the receiver was told.
func TestViewOfLargeBlock(t *testing.T) {
	const size = 4096
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
	var want []byte
	passOne(j, func() (*buffer.PackedData, error) {
		d, err := commtest.Pack(j.Ctx, j.Mem[0], 1, 1<<20)
		if err != nil {
			return nil, err
		}
		view := &buffer.PackedData{Meta: d.Meta, Data: d.Data.Slice(100, size)}
		d.Data.Release()
		err = view.Data.OnHost(j.Ctx, func(p []byte) error { want = bytes.Clone(p); return nil })
		return view, err
	}, func(p []byte) error {
		if !bytes.Equal(p, want) {
			return fmt.Errorf("%d other bytes", len(p))
		}
		return nil
	})
}

// TestTooLargeForPeer: a chunk that the owner could never hold is refused at
// once, and stays the caller's.
func TestTooLargeForPeer(t *testing.T) {
	small := func(n int) []comm.Transport { return inproc.New(n) }
	j := commtest.NewJob(t, small, 2, commtest.Options{Limit: buffer.Bytes(8 << 20)})
	if err := j.Mem[0].SetLimit(buffer.Host, buffer.Bytes(64<<20)); err != nil {
		t.Fatal(err)
	}
	j.Each(func(_ comm.Rank, c *comm.Communicator) error { return c.Barrier(j.Ctx) }) // hellos are through
	s, err := shuffle.New(j.Comm[0], j.Mem[0], shuffle.Config{Op: 1, Parts: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d, err := commtest.Pack(j.Ctx, j.Mem[0], 1, 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if err := s.Insert(j.Ctx, 1, d); !errors.Is(err, buffer.ErrTooLarge) || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("insert: %v", err)
	}
}
