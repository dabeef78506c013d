package buffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A queue drives the waiters of one Resource, all of whose blocks are taken at
// first, and records in which order they are served. Sizes are in blocks.
type queue struct {
	t      *testing.T
	r      *Resource
	taken  []*Reservation
	served []string
	grants map[string]*Reservation
	cancel map[string]func()
}

const (
	block       = 2 << 20 // bytes, so that every multiple is a block size
	queueBlocks = 100
)

func newQueue(t *testing.T) *queue {
	q := &queue{t: t, r: newResource(t, NewArena(), queueBlocks*block),
		grants: make(map[string]*Reservation), cancel: make(map[string]func())}
	for range queueBlocks {
		v, _ := q.r.TryReserve(block)
		q.taken = append(q.taken, v)
	}
	return q
}

// wait parks a call; names that start with r are requests.
func (q *queue) wait(name string, blocks int64) {
	q.t.Helper()
	ready := func(v *Reservation, err error) {
		if err != nil {
			q.served = append(q.served, name+": "+err.Error())
			return
		}
		if v.Left() != blocks*block {
			q.t.Errorf("%s got %d bytes", name, v.Left())
		}
		q.served = append(q.served, name)
		q.grants[name] = v
	}
	if strings.HasPrefix(name, "r") {
		q.cancel[name] = q.r.Request(blocks*block, nil, ready)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel[name] = cancel
	go func() {
		v, err := q.r.Reserve(ctx, blocks*block)
		ready(v, err)
	}()
	synctest.Wait()
}

// free releases that many single blocks, one after the other.
func (q *queue) free(blocks int) {
	for range blocks {
		last := len(q.taken) - 1
		q.taken[last].Release()
		q.taken = q.taken[:last]
		synctest.Wait()
	}
}

// want compares the order so far.
func (q *queue) want(served ...string) {
	q.t.Helper()
	if !slices.Equal(q.served, served) {
		q.t.Errorf("served %q, want %q", q.served, served)
	}
}

// end releases everything; everybody still waiting is served by that.
func (q *queue) end() {
	q.free(len(q.taken))
	for len(q.grants) > 0 {
		for name, v := range q.grants {
			v.Release()
			delete(q.grants, name)
		}
		synctest.Wait()
	}
	if w := q.r.Waiting(); w != (Waiting{}) {
		q.t.Errorf("still waiting: %+v", w)
	}
	closeResource(q.t, q.r)
}

func testQueue(t *testing.T, name string, test func(t *testing.T, q *queue)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t)
			test(t, q)
			q.end()
		})
	})
}

func TestWaitOrder(t *testing.T) {
	testQueue(t, "smallest first, then oldest", func(t *testing.T, q *queue) {
		q.wait("c3", 3)
		q.wait("c1", 1)
		q.wait("c2a", 2)
		q.wait("c2b", 2)
		if w := q.r.Waiting(); w != (Waiting{Callers: 4, Smallest: block}) {
			t.Errorf("%+v", w)
		}
		q.free(1)
		q.want("c1")
		q.free(4)
		q.want("c1", "c2a", "c2b")
		q.free(3)
		q.want("c1", "c2a", "c2b", "c3")
	})
	testQueue(t, "requests and callers alike by size", func(t *testing.T, q *queue) {
		q.wait("r4", 4)
		q.wait("c2", 2)
		q.wait("r1", 1)
		if w := q.r.Waiting(); w != (Waiting{Callers: 1, Requests: 2, Smallest: block}) {
			t.Errorf("%+v", w)
		}
		q.free(7)
		q.want("r1", "c2", "r4")
	})
	testQueue(t, "who comes later may go ahead while nobody is overdue", func(t *testing.T, q *queue) {
		q.wait("c5", 5)
		q.free(4)
		v, ok := q.r.TryReserve(block)
		if !ok {
			t.Fatal("refused")
		}
		v.Release()
		q.want()
		q.free(1)
		q.want("c5")
	})
}

// The grant order itself, without goroutines.
func TestRequestsGetEverySecondGrant(t *testing.T) {
	r := newResource(t, NewArena(), 8*block)
	v, _ := r.TryReserve(8 * block)
	var order []string
	var granted []*Reservation
	park := func(name string, request bool, blocks int64) {
		c, err := r.newClaim(blocks*block, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.park(&waiter{claim: c, request: request, ready: func(v *Reservation, err error) {
			order = append(order, name)
			granted = append(granted, v)
		}})
	}
	for _, name := range []string{"c1", "c2", "c3", "c4"} {
		park(name, false, 1)
	}
	park("r1", true, 2)
	park("r2", true, 2)
	v.Release()
	want := []string{"c1", "r1", "c2", "r2", "c3", "c4"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	for _, v := range granted {
		v.Release()
	}
	closeResource(t, r)
}

func TestOverdueCollects(t *testing.T) {
	testQueue(t, "one", func(t *testing.T, q *queue) {
		q.wait("c4", 4)
		<-time.After(collectAfter - 1)
		q.wait("c1", 1)
		q.free(1)
		q.want("c1")
		<-time.After(1)
		q.wait("c1b", 1)
		q.free(3)
		q.want("c1")
		if n := q.r.Available(Host); n != 3*block {
			t.Errorf("available %d", n)
		}
		if _, ok := q.r.TryReserve(block); ok {
			t.Error("granted what is kept for another")
		}
		q.free(1)
		q.want("c1", "c4")
		q.free(1)
		q.want("c1", "c4", "c1b")
	})
	testQueue(t, "what was free before stays for all", func(t *testing.T, q *queue) {
		q.free(2)
		q.wait("c4", 4)
		<-time.After(collectAfter)
		q.free(1)
		q.wait("c2", 2)
		q.want("c2")
		q.free(3)
		q.want("c2", "c4")
	})
	testQueue(t, "the next overdue follows", func(t *testing.T, q *queue) {
		q.wait("c3", 3)
		q.wait("r5", 5)
		<-time.After(collectAfter)
		q.wait("c1", 1)
		q.free(3)
		q.want("c3")
		q.free(5)
		q.want("c3", "r5")
		q.free(1)
		q.want("c3", "r5", "c1")
	})
	testQueue(t, "who leaves gives back what was kept", func(t *testing.T, q *queue) {
		q.wait("r5", 5)
		<-time.After(collectAfter)
		q.wait("c2", 2)
		q.free(3)
		q.want()
		q.cancel["r5"]()
		synctest.Wait()
		q.want("c2")
	})
	testQueue(t, "a lower limit takes what was kept", func(t *testing.T, q *queue) {
		q.wait("c4", 4)
		<-time.After(collectAfter)
		q.free(3)
		if err := q.r.SetLimit(Host, Bytes((queueBlocks-3)*block)); err != nil {
			t.Fatal(err)
		}
		q.free(1)
		q.want()
		q.free(3)
		q.want("c4")
		if err := q.r.SetLimit(Host, Bytes(queueBlocks*block)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	testQueue(t, "with the context", func(t *testing.T, q *queue) {
		cause := errors.New("lost interest")
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error)
		go func() {
			_, err := q.r.Reserve(ctx, block-100)
			done <- err
		}()
		synctest.Wait()
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) || err.Error() != "buffer: reserve 2.0 MiB: lost interest" {
			t.Errorf("%v", err)
		}
	})
	testQueue(t, "not before it is needed", func(t *testing.T, q *queue) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		q.free(1)
		v, err := q.r.Reserve(ctx, block)
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
	})
	testQueue(t, "with Fail", func(t *testing.T, q *queue) {
		why := q.r.NoMemory(Host, block, "")
		q.wait("r1", 1)
		q.wait("c1", 1)
		q.r.FailWaiters(why)
		synctest.Wait()
		q.want("r1: buffer: wait for 2.0 MiB: "+why.Error(), "c1: buffer: wait for 2.0 MiB: "+why.Error())
		q.wait("c1b", 1)
		q.free(1)
		if len(q.served) != 3 || q.served[2] != "c1b" {
			t.Errorf("served %q", q.served)
		}
	})
	testQueue(t, "with a limit that is too low for ever", func(t *testing.T, q *queue) {
		q.wait("c9", 9)
		q.wait("r2", 2)
		_ = q.r.SetLimit(Host, Bytes(8*block))
		synctest.Wait()
		q.want("c9: buffer: reserve 18.0 MiB: larger than any limit (host limit 16.0 MiB)")
		_ = q.r.SetLimit(Host, Bytes((queueBlocks+2)*block))
		synctest.Wait()
		if len(q.served) != 2 || q.served[1] != "r2" {
			t.Errorf("served %q", q.served)
		}
		q.grants["r2"].Release()
		delete(q.grants, "r2")
		_ = q.r.SetLimit(Host, Bytes(queueBlocks*block))
	})
	t.Run("after MemoryWait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{MemoryWait: 3 * time.Second}
			cfg.Limits[Host] = Bytes(1 << 20)
			r, err := NewResource(nil, nil, cfg)
			if err != nil {
				t.Fatal(err)
			}
			v, _ := r.TryReserve(1 << 20)
			v.SetHolder(HeldOutgoing)
			start := time.Now()
			_, err = r.Reserve(context.Background(), 64)
			var short *NoMemoryError
			if !errors.As(err, &short) || short.Want != 64 || !slices.Equal(short.Holders, []Held{{"outgoing", 1 << 20}}) {
				t.Errorf("%v", err)
			}
			if waited := time.Since(start); waited != cfg.MemoryWait {
				t.Errorf("waited %v", waited)
			}
			v.Release()
			closeResource(t, r)
		})
	})
}

func TestRequestCancel(t *testing.T) {
	r := newResource(t, NewArena(), 64)
	v, _ := r.TryReserve(64)
	calls := 0
	var granted *Reservation
	ready := func(v *Reservation, err error) { calls++; granted = v }
	cancel := r.Request(64, nil, ready)
	cancel()
	cancel()
	v.Release()
	if calls != 0 {
		t.Errorf("%d calls after cancel", calls)
	}
	cancel = r.Request(64, nil, ready)
	if calls != 1 || granted == nil {
		t.Fatalf("%d calls, %v", calls, granted)
	}
	cancel()
	checkUsage(t, r, 0, 64, 0)
	granted.Release()

	// A grant that is on its way is given back.
	w := &waiter{claim: claim{size: 64}, request: true, ready: ready}
	w.res, _ = r.TryReserve(64)
	w.state.Store(waiterSettled)
	if !r.withdraw(w) {
		t.Error("not withdrawn")
	}
	deliver([]*waiter{w})
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	closeResource(t, r)
}

// The callbacks run without a lock: they may call anything.
func TestReadyMayCallBack(t *testing.T) {
	r := newResource(t, NewArena(), 64)
	v, _ := r.TryReserve(64)
	order := []string{}
	r.OnChange(func() { order = append(order, fmt.Sprint("parked ", r.Waiting().Requests)) })
	r.Request(64, nil, func(v *Reservation, err error) {
		order = append(order, "first")
		v.Release()
		r.Request(64, nil, func(v *Reservation, err error) {
			order = append(order, "nested")
			v.Release()
		})
	})
	r.Request(64, nil, func(v *Reservation, err error) {
		order = append(order, "second")
		v.Release()
	})
	r.OnChange(nil)
	v.Release()
	if want := []string{"parked 1", "parked 2", "first", "second", "nested"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	closeResource(t, r)
}
