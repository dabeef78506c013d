package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/shuffle"
)

// scenario is everything that is random about one run, drawn from its seed.
type scenario struct {
	ranks, parts, threads int
	wire                  bool
	owner                 shuffle.Owner
	order                 comm.Order
	limit                 buffer.Limit
	outgoing              int64
	comm                  comm.Config
	chunks                [][]int64 // by rank: sizes of what it inserts
	cancel                bool      // contexts end at random
	giveUp                int       // the rank that closes early, or -1
}

func draw(rng *rand.Rand) scenario {
	sc := scenario{
		ranks: 1 + rng.IntN(5), parts: 1 + rng.IntN(20), threads: 1 + rng.IntN(3),
		wire: rng.IntN(2) == 0, order: comm.Order(rng.IntN(3)), giveUp: -1,
		cancel: rng.IntN(3) == 0,
	}
	switch rng.IntN(4) {
	case 0:
		sc.owner = shuffle.Contiguous
	case 1:
		one := comm.Rank(rng.IntN(sc.ranks))
		sc.owner = func(shuffle.PartID, int, int) comm.Rank { return one }
	}
	if rng.IntN(2) == 0 {
		sc.outgoing = 1 + rng.Int64N(100_000)
	}
	if rng.IntN(2) == 0 {
		sc.comm = comm.Config{Window: 1 + rng.IntN(3), WireBytes: 1 + rng.Int64N(1<<20), CoalesceBytes: 1 + rng.IntN(8000), BatchBytes: 20_000}
	}
	if rng.IntN(4) == 0 {
		sc.giveUp = rng.IntN(sc.ranks)
	}
	var total int64
	for range sc.ranks {
		var sizes []int64
		for range rng.IntN(60) {
			n := []int64{0, rng.Int64N(100), rng.Int64N(5000), rng.Int64N(300_000)}[rng.IntN(4)]
			sizes = append(sizes, n)
			total += n
		}
		sc.chunks = append(sc.chunks, sizes)
	}
	if rng.IntN(2) == 0 {
		// Enough for everything on one rank, and the slabs.
		sc.limit = buffer.Bytes(2*total + 4<<20)
	}
	return sc
}

// TestRandom runs seeded scenarios. Either every chunk arrives once, whole, at
// its owner and in order, or every rank has an error and nothing is leaked.
func TestRandom(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { scenarioRun(t, seed) })
	}
}

func scenarioRun(t *testing.T, seed uint64) {
	sc := draw(rand.New(rand.NewPCG(seed, 1)))
	connect := commtest.Connect(inproc.New)
	if sc.wire {
		connect = func(n int) []comm.Transport { return commtest.Wire(inproc.New(n), seed) }
	}
	j := commtest.NewJob(t, connect, sc.ranks, commtest.Options{Limit: sc.limit, Comm: sc.comm})
	errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
		return sc.rank(j, me, c, rand.New(rand.NewPCG(seed, 2+uint64(me))))
	})
	if sc.giveUp >= 0 {
		for r, err := range errs {
			var pe *comm.PeerError
			if r != sc.giveUp && err != nil && !errors.As(err, &pe) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		return
	}
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v (%+v)", r, err, sc)
		}
	}
}

func (sc *scenario) rank(j *commtest.Job, me comm.Rank, c *comm.Communicator, rng *rand.Rand) error {
	s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: sc.parts, Owner: sc.owner, Order: sc.order, OutgoingBytes: sc.outgoing})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for i, size := range sc.chunks[me] {
		if sc.giveUp == int(me) && i == len(sc.chunks[me])/2 {
			return nil
		}
		p := shuffle.PartID(rng.IntN(sc.parts))
		d, err := commtest.Pack(j.Ctx, j.Mem[me], key(me, p, i), size)
		if err != nil {
			return err
		}
		if err := sc.insert(j.Ctx, s, p, d, rng); err != nil {
			if !errors.Is(err, shuffle.ErrAccepted) {
				d.Release()
			}
			return err
		}
	}
	if sc.giveUp == int(me) {
		return nil
	}
	if err := s.InsertFinished(); err != nil {
		return err
	}
	total := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make([]error, sc.threads)
	for i := range sc.threads {
		wg.Go(func() {
			n := 0
			n, errs[i] = takeAll(j.Ctx, s, me)
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.Wait(j.Ctx)
}

// insert sometimes uses a context that has ended: the chunk is in all the same.
func (sc *scenario) insert(ctx context.Context, s *shuffle.ShufflerAsync, p shuffle.PartID, d *buffer.PackedData, rng *rand.Rand) error {
	if !sc.cancel || rng.IntN(2) == 0 {
		return s.Insert(ctx, p, d)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	err := s.Insert(ended, p, d)
	if errors.Is(err, shuffle.ErrAccepted) && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// takeAll extracts partitions until there are no more, checks each chunk and
// the order within (source, partition), and returns how many there were.
func takeAll(ctx context.Context, s *shuffle.ShufflerAsync, me comm.Rank) (int, error) {
	n := 0
	for {
		p, err := s.NextPartition(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		last := map[comm.Rank]int64{}
		for d, err := range s.Extract(ctx, p) {
			if err != nil {
				return n, err
			}
			err := checkOne(ctx, d, p, last)
			d.Release()
			if err != nil {
				return n, fmt.Errorf("rank %d: %w", me, err)
			}
			n++
		}
	}
}

// checkOne checks one chunk of partition p, and that it comes after the last of
// its source.
func checkOne(ctx context.Context, d *buffer.PackedData, p shuffle.PartID, last map[comm.Rank]int64) error {
	var k uint64
	var size int64
	if _, err := fmt.Sscanf(string(d.Meta), "%d/%d", &k, &size); err != nil {
		return err
	}
	src, i := comm.Rank(k>>40), int64(k&(1<<20-1))+1
	if shuffle.PartID(k>>20&(1<<20-1)) != p {
		return fmt.Errorf("chunk of partition %d in partition %d", k>>20&(1<<20-1), p)
	}
	if i <= last[src] {
		return fmt.Errorf("chunk %d of rank %d after %d", i, src, last[src])
	}
	last[src] = i
	return commtest.Check(ctx, d, k, size)
}
