package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/inproc"
)

// Rank is one rank of a job: its place, its memory and its way to the others.
type Rank struct {
	ID, Size int
	Mem      *buffer.Resource
	Comm     *comm.Communicator
	scope    *comm.Scope
}

// RankError is an error of one rank.
type RankError struct {
	Rank int
	Err  error
}

func (e *RankError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the rank.
func (e *RankError) Unwrap() error { return e.Err }

// Job is the ranks that run in this process.
type Job struct {
	ranks []*Rank
}

// StartInproc starts n ranks that share this process, each with the given limit
// of host memory. Close the Job.
func StartInproc(n int, limit buffer.Limit) (*Job, error) {
	j := &Job{}
	arena := buffer.NewArena()
	for id, transport := range inproc.New(n) {
		r, err := start(id, n, arena, limit, transport)
		var noMemory *buffer.NoMemoryError
		if errors.As(err, &noMemory) || errors.Is(err, buffer.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrLimit, err)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start rank %d: %w", id, err), j.abandon(err))
		}
		j.ranks = append(j.ranks, r)
	}
	return j, nil
}

func start(id, n int, arena *buffer.Arena, limit buffer.Limit, transport comm.Transport) (*Rank, error) {
	r := &Rank{ID: id, Size: n}
	var err error
	cfg := buffer.Config{}
	cfg.Limits[buffer.Host] = limit
	if r.Mem, err = arena.NewResource(nil, nil, cfg); err != nil {
		return nil, err
	}
	if r.Comm, err = comm.New(transport, r.Mem, comm.Config{}); err != nil {
		return nil, errors.Join(err, r.Mem.Close())
	}
	if r.scope, err = r.Comm.Scope("shuffle-bench"); err != nil {
		return nil, errors.Join(err, r.close(context.Background()))
	}
	return r, nil
}

// Size returns the number of ranks.
func (j *Job) Size() int { return len(j.ranks) }

// HostLimit returns the limit of host memory of a rank in bytes, math.MaxInt64
// without one.
func (j *Job) HostLimit() int64 { return j.ranks[0].Mem.Usage(buffer.Host).Limit }

// Transport names what carries the messages.
func (j *Job) Transport() string { return j.ranks[0].Comm.Transport() }

// Run has every rank do fn. A rank that fails tells the others why, so that none
// waits for it. The error is a *RankError of the rank that failed first.
func (j *Job) Run(ctx context.Context, fn func(ctx context.Context, r *Rank) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first *RankError
	)
	for _, r := range j.ranks {
		wg.Go(func() {
			err := fn(ctx, r)
			if err == nil {
				return
			}
			mu.Lock()
			if first == nil || echo(first.Err) && !echo(err) {
				first = &RankError{r.ID, err}
			}
			mu.Unlock()
			r.Comm.Abort(err)
		})
	}
	wg.Wait()
	if first == nil {
		return nil
	}
	return first
}

// echo tells whether err only reports what another rank did.
func echo(err error) bool {
	var pe *comm.PeerError
	return errors.As(err, &pe)
}

// closeWait bounds how long the ranks of a failed job wait for each other.
const closeWait = 5 * time.Second

// Close ends the job. After a failed Run what it finds left over is of no
// interest; otherwise memory that is still in use is an error.
func (j *Job) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	errs := make([]error, len(j.ranks))
	var wg sync.WaitGroup
	for i, r := range j.ranks {
		wg.Go(func() { errs[i] = r.close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// abandon ends ranks whose peers were never started.
func (j *Job) abandon(cause error) error {
	for _, r := range j.ranks {
		r.Comm.Abort(cause)
	}
	return j.Close()
}

func (r *Rank) close(ctx context.Context) error {
	if r.scope != nil {
		r.scope.Close()
	}
	return errors.Join(r.Comm.Close(ctx), r.Mem.Close())
}
