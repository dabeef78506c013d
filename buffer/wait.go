package buffer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	progressTimeout = 100 * time.Millisecond
	collectAfter    = 10 * progressTimeout // age from which a waiter collects what is released
)

// A waiter is a parked Reserve or Request.
type waiter struct {
	claim
	request bool
	age     uint64 // lower is older
	since   time.Time
	ready   func(*Reservation, error)

	older, newer *waiter // among the parked

	state atomic.Uint32 // waiterParked until it leaves the queues, under the lock
	res   *Reservation  // outcome
	err   error
}

const (
	waiterParked  uint32 = iota
	waiterSettled        // has an outcome that is on its way to ready
	waiterCalled         // ready was called
	waiterGone           // withdrawn; ready will not be called
)

// waiters are the parked calls of a Resource.
type waiters struct {
	callers, requests []*waiter // by size, then age
	oldest, newest    *waiter
	collector         *waiter // the oldest once it is overdue: what is released is kept for it
	callerLast        bool    // the last one served was a caller
	ages              uint64
}

func compareWaiters(x, y *waiter) int {
	return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(x.age, y.age))
}

func (q *waiters) queue(w *waiter) *[]*waiter {
	if w.request {
		return &q.requests
	}
	return &q.callers
}

func (q *waiters) add(w *waiter) {
	q.ages++
	w.age = q.ages
	queue := q.queue(w)
	at, _ := slices.BinarySearchFunc(*queue, w, compareWaiters)
	*queue = slices.Insert(*queue, at, w)
	w.older = q.newest
	if q.newest != nil {
		q.newest.newer = w
	} else {
		q.oldest = w
	}
	q.newest = w
}

func (q *waiters) remove(w *waiter) {
	queue := q.queue(w)
	at, _ := slices.BinarySearchFunc(*queue, w, compareWaiters)
	*queue = slices.Delete(*queue, at, at+1)
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		q.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		q.newest = w.older
	}
	w.older, w.newer = nil, nil
}

// Request is Reserve for who cannot wait: it queues and returns. ready is called
// once with the Reservation, or with the error that Reserve would return. That
// may be before Request returns; later it happens on the goroutine that released
// the memory, with no lock of this package held, so ready must not block.
//
// After cancel returns, ready will not be called unless its call has begun by
// then; the Reservation of a call that has begun is the receiver's.
func (r *Resource) Request(size int64, order []MemType, ready func(*Reservation, error)) (cancel func()) {
	c, err := r.newClaim(size, order)
	var v *Reservation
	if err == nil {
		v, err = r.grantNow(c)
	}
	if v != nil || err != nil {
		ready(v, err)
		return func() {}
	}
	w := &waiter{claim: c, request: true, ready: ready}
	r.park(w)
	return func() { r.withdraw(w) }
}

// await is the waiting part of Reserve.
func (r *Resource) await(ctx context.Context, c claim) (*Reservation, error) {
	type outcome struct {
		v   *Reservation
		err error
	}
	done := make(chan outcome, 1)
	w := &waiter{claim: c, ready: func(v *Reservation, err error) { done <- outcome{v, err} }}
	r.park(w)
	var overdue <-chan time.Time
	if r.patience > 0 {
		timer := time.NewTimer(r.patience)
		defer timer.Stop()
		overdue = timer.C
	}
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		if r.withdraw(w) {
			return nil, fmt.Errorf("buffer: reserve %s: %w", formatBytes(c.size), context.Cause(ctx))
		}
	case <-overdue:
		r.mu.Lock()
		short := r.noMemoryLocked(r.likelyLocked(&c), c.size, "")
		r.mu.Unlock()
		if r.withdraw(w) {
			return nil, short
		}
	}
	o := <-done // settled meanwhile
	return o.v, o.err
}

// park queues w, unless it can be settled after all.
func (r *Resource) park(w *waiter) {
	w.since = time.Now()
	r.mu.Lock()
	if err := r.hopelessLocked(&w.claim); err != nil {
		r.mu.Unlock()
		w.err = err
		w.state.Store(waiterSettled)
		deliver([]*waiter{w})
		return
	}
	r.mu.waiting.add(w)
	r.mu.version++
	settled := r.serveLocked() // memory may have come free since grantNow
	changed := r.mu.changed
	r.mu.Unlock()
	deliver(settled)
	if changed != nil && w.state.Load() == waiterParked {
		changed()
	}
}

// withdraw ends the wait of w and reports whether it did, so that ready is never
// called. A grant that is on its way is given back.
func (r *Resource) withdraw(w *waiter) bool {
	r.mu.Lock()
	if w.state.Load() == waiterParked {
		w.state.Store(waiterGone)
		r.leaveLocked(w)
		settled := r.serveLocked() // what was kept for w
		r.mu.Unlock()
		deliver(settled)
		return true
	}
	r.mu.Unlock()
	if !w.state.CompareAndSwap(waiterSettled, waiterGone) {
		return false
	}
	if w.res != nil {
		w.res.Release()
	}
	return true
}

// leaveLocked takes w out of the queues.
func (r *Resource) leaveLocked(w *waiter) {
	q := &r.mu.waiting
	q.remove(w)
	r.mu.version++
	if q.collector == w {
		q.collector = nil
		for t := range r.mu.types {
			r.mu.types[t].kept = 0
		}
	}
}

// settleLocked gives w its outcome, which deliver passes on.
func (r *Resource) settleLocked(w *waiter, v *Reservation, err error) {
	r.leaveLocked(w)
	w.res, w.err = v, err
	w.state.Store(waiterSettled)
}

// deliver calls ready of each waiter that was not withdrawn meanwhile. No lock
// may be held.
func deliver(settled []*waiter) {
	for _, w := range settled {
		if w.state.CompareAndSwap(waiterSettled, waiterCalled) {
			w.ready(w.res, w.err)
		}
	}
}

// collectLocked sets n released bytes of t aside for the oldest waiter if it is
// overdue.
func (r *Resource) collectLocked(t MemType, n int64) {
	q := &r.mu.waiting
	if q.collector == nil && time.Since(q.oldest.since) >= collectAfter {
		q.collector = q.oldest
	}
	if w := q.collector; w != nil && r.likelyLocked(&w.claim) == t {
		a := &r.mu.types[t]
		a.kept = max(0, min(a.kept+n, w.size, a.limit-a.total))
	}
}

// serveLocked grants what can be granted and returns those waiters for deliver.
func (r *Resource) serveLocked() (settled []*waiter) {
	for {
		w, t := r.nextLocked()
		if w == nil {
			return settled
		}
		r.mu.waiting.callerLast = !w.request
		r.settleLocked(w, r.grantLocked(&w.claim, t), nil)
		settled = append(settled, w)
	}
}

// nextLocked returns the waiter to serve next, or nil.
func (r *Resource) nextLocked() (*waiter, MemType) {
	q := &r.mu.waiting
	if w := q.collector; w != nil {
		if t, ok := r.placeLocked(&w.claim, true); ok {
			return w, t
		}
	}
	caller, callerType := r.firstLocked(q.callers)
	request, requestType := r.firstLocked(q.requests)
	switch {
	case caller == nil:
		return request, requestType
	case request == nil:
		return caller, callerType
	case q.callerLast || compareWaiters(request, caller) < 0:
		return request, requestType
	}
	return caller, callerType
}

// firstLocked returns the first in queue that can be granted.
func (r *Resource) firstLocked(queue []*waiter) (*waiter, MemType) {
	var room int64
	for t := range r.mu.types {
		room = max(room, r.mu.types[t].available())
	}
	for _, w := range queue {
		if w.size > room {
			break // so are all after it
		}
		if t, ok := r.placeLocked(&w.claim, false); ok {
			return w, t
		}
	}
	return nil, 0
}

// rejectLocked settles those that no limit admits any more.
func (r *Resource) rejectLocked() (settled []*waiter) {
	for w := r.mu.waiting.oldest; w != nil; {
		newer := w.newer
		if err := r.hopelessLocked(&w.claim); err != nil {
			r.settleLocked(w, nil, err)
			settled = append(settled, w)
		}
		w = newer
	}
	return settled
}

// failLocked settles all with an error that wraps err.
func (r *Resource) failLocked(err error) (settled []*waiter) {
	for w := r.mu.waiting.oldest; w != nil; w = r.mu.waiting.oldest {
		r.settleLocked(w, nil, fmt.Errorf("buffer: wait for %s: %w", formatBytes(w.size), err))
		settled = append(settled, w)
	}
	return settled
}

// FailWaiters ends every waiting Reserve and Request with an error that wraps
// err. Later ones are not affected.
func (r *Resource) FailWaiters(err error) {
	r.mu.Lock()
	settled := r.failLocked(err)
	r.mu.Unlock()
	deliver(settled)
}

// Waiting returns how many calls wait for memory.
func (r *Resource) Waiting() Waiting {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := &r.mu.waiting
	n := Waiting{Callers: len(q.callers), Requests: len(q.requests)}
	switch {
	case n.Callers > 0 && n.Requests > 0:
		n.Smallest = min(q.callers[0].size, q.requests[0].size)
	case n.Callers > 0:
		n.Smallest = q.callers[0].size
	case n.Requests > 0:
		n.Smallest = q.requests[0].size
	}
	return n
}

// OnChange makes fn the only observer, nil none. It is called, with no lock of
// this package held, whenever a call starts to wait, and must not block.
func (r *Resource) OnChange(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.changed = fn
}
