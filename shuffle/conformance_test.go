package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/shuffle"
)

// The rows named in these tests are those of docs/conformance.md.

// transports are what every row runs over.
var transports = []struct {
	name    string
	connect commtest.Connect
}{
	{"inproc", inproc.New},
	{"wire", func(n int) []comm.Transport { return commtest.Wire(inproc.New(n), uint64(n)) }},
}

// each runs fn over every transport and rank count.
func each(t *testing.T, fn func(t *testing.T, connect commtest.Connect, n int)) {
	for _, tr := range transports {
		for _, n := range commtest.Ranks {
			t.Run(fmt.Sprintf("%s/ranks=%d", tr.name, n), func(t *testing.T) { fn(t, tr.connect, n) })
		}
	}
}

// key names chunk i that rank src inserts for partition p.
func key(src comm.Rank, p shuffle.PartID, i int) uint64 {
	return uint64(src)<<40 | uint64(p)<<20 | uint64(i)
}

// insert puts count chunks of size bytes into every partition.
func insert(j *commtest.Job, s *shuffle.ShufflerAsync, me comm.Rank, parts, count int, size int64) error {
	for p := range shuffle.PartID(parts) {
		for i := range count {
			d, err := commtest.Pack(j.Ctx, j.Mem[me], key(me, p, i), size)
			if err != nil {
				return err
			}
			if err := s.Insert(j.Ctx, p, d); err != nil {
				if !errors.Is(err, shuffle.ErrAccepted) {
					d.Release()
				}
				return err
			}
		}
	}
	return s.InsertFinished()
}

// extract takes every partition in completion order and checks that each has
// count chunks of every rank, whole and in the order of their insertion.
func extract(j *commtest.Job, s *shuffle.ShufflerAsync, n, count int, size int64) error {
	left := map[shuffle.PartID]bool{}
	for _, p := range s.LocalPartitions() {
		left[p] = true
	}
	for {
		p, err := s.NextPartition(j.Ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !left[p] {
			return fmt.Errorf("partition %d came twice or is not ours", p)
		}
		delete(left, p)
		if err := checkPartition(j, s, p, n, count, size); err != nil {
			return fmt.Errorf("partition %d: %w", p, err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d partitions never came", len(left))
	}
	return nil
}

func checkPartition(j *commtest.Job, s *shuffle.ShufflerAsync, p shuffle.PartID, n, count int, size int64) error {
	next := make([]int, n)
	total := 0
	for d, err := range s.Extract(j.Ctx, p) {
		if err != nil {
			return err
		}
		var k uint64
		var l int64
		if _, err := fmt.Sscanf(string(d.Meta), "%d/%d", &k, &l); err != nil {
			return err
		}
		src := comm.Rank(k >> 40)
		if err := commtest.Check(j.Ctx, d, key(src, p, next[src]), size); err != nil {
			return fmt.Errorf("chunk %d of rank %d: %w", next[src], src, err)
		}
		next[src]++
		total++
		d.Release()
	}
	if total != n*count {
		return fmt.Errorf("%d chunks, want %d", total, n*count)
	}
	return nil
}

// run is a whole shuffle on one rank.
func run(j *commtest.Job, me comm.Rank, c *comm.Communicator, cfg shuffle.Config, count int, size int64) error {
	s, err := shuffle.New(c, j.Mem[me], cfg)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := insert(j, s, me, cfg.Parts, count, size); err != nil {
		return err
	}
	if err := s.Wait(j.Ctx); err != nil {
		return err
	}
	return extract(j, s, c.Size(), count, size)
}

func TestS1RoundTrip(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		for _, parts := range []int{1, 2, 5, 10} {
			for _, size := range []int64{1, 9, 100, 100_000} {
				j := commtest.NewJob(t, connect, n, commtest.Options{})
				j.Each(func(me comm.Rank, c *comm.Communicator) error {
					return run(j, me, c, shuffle.Config{Op: 1, Parts: parts}, 3, size)
				})
				j.Close()
			}
		}
	})
}

func TestS2Statistics(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		j := commtest.NewJob(t, connect, n, commtest.Options{})
		const parts, size = 12, 7 * 8
		stats := make([]shuffle.Stats, n)
		j.Each(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: parts})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			for p := range shuffle.PartID(parts) {
				d, err := commtest.Pack(j.Ctx, j.Mem[me], 1, size)
				if err != nil {
					return err
				}
				d.Meta = []byte("m")
				if err := s.Insert(j.Ctx, p, d); err != nil {
					return err
				}
			}
			if err := s.InsertFinished(); err != nil {
				return err
			}
			err = s.Wait(j.Ctx)
			stats[me] = s.Stats()
			return err
		})
		for me := range n {
			var sent, received, local int64
			for p := range parts {
				owner := p % n
				if owner == me {
					local++
					received += int64(n - 1)
				} else {
					sent++
				}
			}
			got := stats[me]
			if got.ChunksSent != sent || got.BytesSent != sent*(size+1) || got.ChunksReceived != received ||
				got.BytesReceived != received*(size+1) || got.ChunksLocal != local || got.BytesLocal != local*(size+1) {
				t.Errorf("rank %d: %+v, want %d sent, %d received, %d local", me, got, sent, received, local)
			}
		}
	})
}

func TestS3Concurrent(t *testing.T) {
	for _, tr := range transports {
		for _, ops := range []int{1, 2, 4} {
			for _, parts := range []int{1, 10, 100} {
				t.Run(fmt.Sprintf("%s/ops=%d/parts=%d", tr.name, ops, parts), func(t *testing.T) {
					j := commtest.NewJob(t, tr.connect, 3, commtest.Options{})
					j.Each(func(me comm.Rank, c *comm.Communicator) error {
						errs := make([]error, ops)
						var wg sync.WaitGroup
						for op := range ops {
							wg.Go(func() {
								errs[op] = run(j, me, c, shuffle.Config{Op: comm.OpID(op), Parts: parts}, 2, 10_000)
							})
						}
						wg.Wait()
						return errors.Join(errs...)
					})
				})
			}
		}
	}
}

func TestS6NoLocalPartitions(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		last := func(_ shuffle.PartID, _, size int) comm.Rank { return comm.Rank(size - 1) }
		j := commtest.NewJob(t, connect, n, commtest.Options{})
		j.Each(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 5, Owner: last})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			if owns := int(me) == n-1; !owns {
				if _, err := s.NextPartition(j.Ctx); !errors.Is(err, io.EOF) {
					return fmt.Errorf("next partition of a rank that owns none: %v", err)
				}
			}
			if err := insert(j, s, me, 5, 2, 50); err != nil {
				return err
			}
			<-s.Done()
			return extract(j, s, n, 2, 50)
		})
	})
}

func TestS6ConcurrentReaders(t *testing.T) {
	for _, parts := range []int{1, 2, 100, 101} {
		for _, threads := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("parts=%d/threads=%d", parts, threads), func(t *testing.T) {
				j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
				j.Each(func(me comm.Rank, c *comm.Communicator) error {
					s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: parts})
					if err != nil {
						return err
					}
					defer func() { _ = s.Close() }()
					var mu sync.Mutex
					seen := map[shuffle.PartID]int{}
					errs := make([]error, threads)
					var wg sync.WaitGroup
					for i := range threads {
						wg.Go(func() {
							for {
								p, err := s.NextPartition(j.Ctx)
								if errors.Is(err, io.EOF) {
									return
								}
								if err == nil {
									err = checkPartition(j, s, p, 2, 2, 300)
								}
								if errs[i] = err; err != nil {
									return
								}
								mu.Lock()
								seen[p]++
								mu.Unlock()
							}
						})
					}
					if err := insert(j, s, me, parts, 2, 300); err != nil {
						return err
					}
					wg.Wait()
					for _, p := range s.LocalPartitions() {
						if seen[p] != 1 {
							return fmt.Errorf("partition %d was handed out %d times", p, seen[p])
						}
					}
					return errors.Join(errs...)
				})
			})
		}
	}
}

func TestS7Contiguous(t *testing.T) {
	for _, parts := range []int{1, 2, 3, 5, 7, 10, 16, 100, 1 << 20} {
		for _, size := range []int{1, 2, 3, 5, 8, 5000} {
			count := make([]int, size)
			last := comm.Rank(0)
			for p := range shuffle.PartID(parts) {
				r := shuffle.Contiguous(p, parts, size)
				if r < last || int(r) >= size {
					t.Fatalf("%d partitions on %d ranks: partition %d on rank %d after %d", parts, size, p, r, last)
				}
				last = r
				count[r]++
			}
			lo, hi := parts, 0
			for _, n := range count {
				lo, hi = min(lo, n), max(hi, n)
			}
			if hi-lo > 1 {
				t.Errorf("%d partitions on %d ranks: between %d and %d each", parts, size, lo, hi)
			}
		}
	}
}

// TestS8CloseWithoutProgress closes a shuffle whose peers never even join.
func TestS8CloseWithoutProgress(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
	s, err := shuffle.New(j.Comm[0], j.Mem[0], shuffle.Config{Op: 1, Parts: 4})
	if err != nil {
		t.Fatal(err)
	}
	d, err := commtest.Pack(j.Ctx, j.Mem[0], 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Insert(j.Ctx, 1, d); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(j.Ctx); !errors.Is(err, shuffle.ErrClosed) {
		t.Errorf("wait after close: %v", err)
	}
	// The rank that comes late learns who gave up.
	late, err := shuffle.New(j.Comm[1], j.Mem[1], shuffle.Config{Op: 1, Parts: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Close() }()
	var pe *comm.PeerError
	if err := late.Wait(j.Ctx); !errors.As(err, &pe) || pe.Rank != 0 || pe.Op != 1 {
		t.Errorf("wait on the other rank: %v", err)
	}
}

func TestS9Empty(t *testing.T) {
	kinds := map[string]func(p shuffle.PartID) int{
		"no inserts":   func(shuffle.PartID) int { return 0 },
		"some empty":   func(p shuffle.PartID) int { return int(p) % 3 },
		"only the 7th": func(p shuffle.PartID) int { return int(p) / 7 % 2 },
	}
	for name, count := range kinds {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, connect commtest.Connect, n int) {
				j := commtest.NewJob(t, connect, n, commtest.Options{})
				j.Each(func(me comm.Rank, c *comm.Communicator) error {
					s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 10})
					if err != nil {
						return err
					}
					defer func() { _ = s.Close() }()
					for p := range shuffle.PartID(10) {
						for i := range count(p) {
							// Metadata only: a chunk without payload is a chunk.
							d, err := commtest.Pack(j.Ctx, j.Mem[me], key(me, p, i), 0)
							if err != nil {
								return err
							}
							if err := s.Insert(j.Ctx, p, d); err != nil {
								return err
							}
						}
					}
					if err := s.InsertFinished(); err != nil {
						return err
					}
					for _, p := range s.LocalPartitions() {
						if err := checkPartition(j, s, p, n, count(p), 0); err != nil {
							return fmt.Errorf("partition %d: %w", p, err)
						}
					}
					return nil
				})
			})
		})
	}
}

func TestS10CloseFromManyGoroutines(t *testing.T) {
	for _, finish := range []bool{true, false} {
		t.Run(fmt.Sprintf("finished=%v", finish), func(t *testing.T) {
			j := commtest.NewJob(t, inproc.New, 3, commtest.Options{})
			errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
				s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 6})
				if err != nil {
					return err
				}
				if finish {
					if err := insert(j, s, me, 6, 2, 2000); err != nil {
						return err
					}
					if err := s.Wait(j.Ctx); err != nil {
						return err
					}
				}
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() { _ = s.Close() })
				}
				wg.Wait()
				return s.Close()
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestS11ConcurrentWait(t *testing.T) {
	each(t, func(t *testing.T, connect commtest.Connect, n int) {
		j := commtest.NewJob(t, connect, n, commtest.Options{})
		j.Each(func(me comm.Rank, c *comm.Communicator) error {
			s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 8 * n})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			errs := make([]error, 5)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() { errs[i] = s.Wait(j.Ctx) })
			}
			err = insert(j, s, me, 8*n, 1, 1000)
			wg.Wait()
			return errors.Join(append(errs, err)...)
		})
	})
}

// TestS12ReuseOp reuses an id directly after Wait, while one rank is slow: it
// reads its partitions of the round before only after the others have begun
// the next.
func TestS12ReuseOp(t *testing.T) {
	for _, parts := range []int{1, 10} {
		t.Run(fmt.Sprintf("parts=%d", parts), func(t *testing.T) {
			each(t, func(t *testing.T, connect commtest.Connect, n int) {
				j := commtest.NewJob(t, connect, n, commtest.Options{})
				began := make([]chan struct{}, 4)
				for i := range began {
					began[i] = make(chan struct{})
				}
				var once [4]sync.Once
				j.Each(func(me comm.Rank, c *comm.Communicator) error {
					for round := range 3 {
						s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 5, Parts: parts})
						if err != nil {
							return err
						}
						defer func() { _ = s.Close() }()
						if me == 0 || n == 1 {
							once[round].Do(func() { close(began[round]) })
						}
						if err := insert(j, s, me, parts, 1+round, 42+int64(round)*81); err != nil {
							return err
						}
						if err := s.Wait(j.Ctx); err != nil {
							return err
						}
						if slow := int(me) == n-1 && n > 1; slow && round < 2 {
							<-began[round+1]
						}
						if err := extract(j, s, n, 1+round, 42+int64(round)*81); err != nil {
							return fmt.Errorf("round %d: %w", round, err)
						}
					}
					return nil
				})
			})
		})
	}
}

func TestContextEndsOnlyTheWait(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
	ended, cancel := context.WithCancel(j.Ctx)
	cancel()
	j.Each(func(me comm.Rank, c *comm.Communicator) error {
		s, err := shuffle.New(c, j.Mem[me], shuffle.Config{Op: 1, Parts: 4})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		if err := s.Wait(ended); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("wait: %v", err)
		}
		if _, err := s.NextPartition(ended); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("next partition: %v", err)
		}
		for _, err := range s.Extract(ended, s.LocalPartitions()[0]) {
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("extract: %v", err)
			}
		}
		if err := insert(j, s, me, 4, 2, 5000); err != nil {
			return err
		}
		return extract(j, s, 2, 2, 5000)
	})
}
