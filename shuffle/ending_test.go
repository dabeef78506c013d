package shuffle_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/shuffle"
)

// TestBlockedInsert: an Insert that waits for room says so when the shuffle ends
// instead: its chunk is lost, and was accepted.
func TestBlockedInsert(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
	s, err := shuffle.New(j.Comm[0], j.Mem[0], shuffle.Config{Op: 1, Parts: 2, OutgoingBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	d, err := commtest.Pack(j.Ctx, j.Mem[0], 1, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Insert(j.Ctx, 1, d) }() // rank 1 never joins
	for s.Stats().ChunksSent == 0 {
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, shuffle.ErrClosed) || !errors.Is(err, shuffle.ErrAccepted) {
		t.Errorf("%v", err)
	}
}

// TestCloseBeforeTheShuffle: a communicator is not closed under a shuffle that
// is complete and not closed.
func TestCloseBeforeTheShuffle(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 1, commtest.Options{})
	s, err := shuffle.New(j.Comm[0], j.Mem[0], shuffle.Config{Op: 1, Parts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.InsertFinished(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(j.Ctx); err != nil {
		t.Fatal(err)
	}
	if err := j.Comm[0].Close(j.Ctx); !errors.Is(err, comm.ErrInUse) {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReserveAfterAbort: who waits for memory learns that the job is over.
func TestReserveAfterAbort(t *testing.T) {
	j := commtest.NewJob(t, inproc.New, 2, commtest.Options{Limit: buffer.Bytes(1 << 20)})
	held, err := j.Mem[0].Reserve(j.Ctx, 512<<10)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		res, err := j.Mem[0].Reserve(j.Ctx, 600<<10)
		res.Release()
		done <- err
	}()
	for j.Mem[0].Waiting().Callers == 0 {
		if err := j.Ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	j.Comm[1].Abort(errors.New("gave up"))
	if err := <-done; err == nil {
		t.Error("granted")
	}
	held.Release()
}
