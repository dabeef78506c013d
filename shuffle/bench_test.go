package shuffle_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/internal/invariant"
	"github.com/sluice-engine/sluice/shuffle"
)

// BenchmarkSmallChunks inserts chunks of 64 bytes on two ranks, half of them
// for the other, and extracts them all. The rate is chunks per rank.
func BenchmarkSmallChunks(b *testing.B) {
	for _, parts := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("parts=%d", parts), func(b *testing.B) { chunks(b, parts, 64) })
	}
}

// BenchmarkChunks is the same for large chunks, which are handed over.
func BenchmarkChunks(b *testing.B) { chunks(b, 8, 1<<20) }

func chunks(b *testing.B, parts int, size int64) {
	j := commtest.NewJob(b, inproc.New, 2, commtest.Options{})
	b.SetBytes(2 * size)
	b.ReportAllocs()
	b.ResetTimer()
	const round = 1 << 20 // chunks at a time, so that memory is bounded
	left := b.N
	for left > 0 {
		n := min(left, round, int(4<<30/size/2))
		left -= n
		j.Each(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: parts})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			if err := produce(j, s, me, parts, n, size); err != nil {
				return err
			}
			for _, p := range s.LocalPartitions() {
				for d, err := range s.Extract(j.Ctx, p) {
					if err != nil {
						return err
					}
					d.Release()
				}
			}
			return s.Wait(j.Ctx)
		})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mchunks/s/rank")
}

var oneByte = []byte{1}

// produce inserts n chunks, whose memory is reserved many at a time.
func produce(j *commtest.Job, s *shuffle.ShufflerAsync, me comm.Rank, parts, n int, size int64) error {
	per := max(1, int(1<<20/buffer.BlockSize(size)))
	for i := 0; i < n; {
		m := min(per, n-i)
		res, err := j.Mem[me].Reserve(j.Ctx, int64(m)*buffer.BlockSize(size), buffer.Host)
		if err != nil {
			return err
		}
		for range m {
			d, err := res.Alloc(size, nil)
			if err != nil {
				return err
			}
			if err := s.Insert(j.Ctx, shuffle.PartID(i%parts), &buffer.PackedData{Meta: oneByte, Data: d}); err != nil {
				return err
			}
			i++
		}
		res.Release()
	}
	return s.InsertFinished()
}

// TestBookkeeping: a chunk of 64 bytes costs at most 200 bytes besides, on the
// Go heap and in accounted memory together, while all are waiting.
func TestBookkeeping(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
	const n, size = 200_000, 64
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var shuffles [2]*shuffle.ShufflerAsync
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 8})
		if err != nil {
			return err
		}
		shuffles[me] = s
		if err := produce(j, s, me, 8, n, size); err != nil {
			return err
		}
		return s.Wait(j.Ctx)
	})
	used := heap() - before
	for _, mem := range j.Mem {
		used += mem.Usage(buffer.Host).Used
	}
	per := used/(2*n) - size
	most := int64(200)
	if invariant.Enabled {
		most = 300 // handles carry what the checks need
	}
	t.Logf("%d bytes of bookkeeping for each chunk", per)
	if per > most {
		t.Errorf("%d bytes of bookkeeping for each chunk, at most %d", per, most)
	}
	for _, s := range shuffles {
		_ = s.Close()
	}
}
