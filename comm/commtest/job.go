package commtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// Watchdog bounds every wait in a test. It only ever ends tests that hang.
const Watchdog = 60 * time.Second

// Connect makes the transports of n ranks that can reach each other.
type Connect func(n int) []comm.Transport

// Job is n ranks in this process, each with memory of its own.
type Job struct {
	T     testing.TB
	Arena *buffer.Arena
	Mem   []*buffer.Resource
	Comm  []*comm.Communicator
	Ctx   context.Context
}

// Options of a Job.
type Options struct {
	Limit buffer.Limit // of host memory for each rank; zero: unlimited
	Comm  comm.Config
}

// NewJob starts a job of n ranks. At the end of the test it is closed, if the
// test did not do that, and each rank's account must be empty.
func NewJob(t testing.TB, connect Connect, n int, opt Options) *Job {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), Watchdog, errors.New("watchdog of the test"))
	j := &Job{T: t, Arena: buffer.NewArena(), Ctx: ctx}
	for r, tr := range connect(n) {
		cfg := buffer.Config{}
		cfg.Limits[buffer.Host] = opt.Limit
		mem, err := j.Arena.NewResource(nil, nil, cfg)
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		c, err := comm.New(tr, mem, opt.Comm)
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		j.Mem, j.Comm = append(j.Mem, mem), append(j.Comm, c)
	}
	t.Cleanup(func() {
		defer cancel()
		j.Close()
		for r, mem := range j.Mem {
			if err := mem.Close(); err != nil {
				t.Errorf("rank %d: memory is left: %v", r, err)
			}
		}
	})
	return j
}

// Each runs fn for every rank at once and fails the test on the first error of
// each.
func (j *Job) Each(fn func(r comm.Rank, c *comm.Communicator) error) {
	j.T.Helper()
	for r, err := range j.Try(fn) {
		if err != nil {
			j.T.Errorf("rank %d: %v", r, err)
		}
	}
	if j.T.Failed() {
		j.T.FailNow()
	}
}

// Try runs fn for every rank at once and returns the errors by rank.
func (j *Job) Try(fn func(r comm.Rank, c *comm.Communicator) error) []error {
	errs := make([]error, len(j.Comm))
	var wg sync.WaitGroup
	for r, c := range j.Comm {
		wg.Go(func() { errs[r] = fn(comm.Rank(r), c) })
	}
	wg.Wait()
	return errs
}

// Close closes all ranks.
func (j *Job) Close() {
	j.T.Helper()
	for r, err := range j.Try(func(_ comm.Rank, c *comm.Communicator) error { return c.Close(j.Ctx) }) {
		if err != nil {
			j.T.Errorf("rank %d: %v", r, err)
		}
	}
}

// Pack makes a chunk of n bytes that Check can verify, for any key.
func Pack(ctx context.Context, mem *buffer.Resource, key uint64, n int64) (*buffer.PackedData, error) {
	p := &buffer.PackedData{Meta: fmt.Appendf(nil, "%d/%d", key, n)}
	if n == 0 {
		return p, nil
	}
	res, err := mem.Reserve(ctx, n, buffer.Host)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	b, err := res.Alloc(n, nil)
	if err != nil {
		return nil, err
	}
	p.Data = b
	return p, b.OnHost(ctx, func(dst []byte) error { fill(dst, key); return nil })
}

// fill writes a pattern that differs by key and place.
func fill(dst []byte, key uint64) {
	x := key*0x9e3779b97f4a7c15 + 1
	var word [8]byte
	for at := 0; at < len(dst); at += len(word) {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(word[:], x)
		copy(dst[at:], word[:])
	}
}

// Check verifies a chunk that Pack made.
func Check(ctx context.Context, p *buffer.PackedData, key uint64, n int64) error {
	if want := fmt.Sprintf("%d/%d", key, n); string(p.Meta) != want {
		return fmt.Errorf("metadata %q, want %q", p.Meta, want)
	}
	if n == 0 {
		if p.Data != nil && p.Data.Len() != 0 {
			return fmt.Errorf("payload of %d bytes, want none", p.Data.Len())
		}
		return nil
	}
	if p.Data == nil || p.Data.Len() != n {
		return fmt.Errorf("payload %v, want %d bytes", p.Data, n)
	}
	return p.Data.OnHost(ctx, func(got []byte) error {
		want := make([]byte, n)
		fill(want, key)
		if !bytes.Equal(want, got) {
			return fmt.Errorf("payload of key %d is damaged", key)
		}
		return nil
	})
}
