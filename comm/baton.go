package comm

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sluice-engine/sluice/buffer"
)

// Progress is a baton: one goroutine at a time runs the core and the
// transport. A call that has to wait takes the baton and drives; a background
// goroutine drives when nobody waits. Whoever lays the baton down names the
// next holder under the mutex, so it is never free and never fought for.

// waiter is a goroutine that may hold the baton.
type waiter struct {
	poked chan struct{} // capacity 1: look again
}

func newWaiter() *waiter { return &waiter{poked: make(chan struct{}, 1)} }

// batonState is guarded by Communicator.mu, but for the flags.
type batonState struct {
	holder     *waiter
	background *waiter
	waiting    []*waiter
	sleeping   bool        // the holder is in a Poll that may block
	stopping   bool        // the background goroutine is to end
	over       bool        // it has: nobody drives any more
	left       atomic.Bool // the closing protocol has ended
	acked      atomic.Bool // every rank knows of the abort
}

func (b *batonState) init() {
	b.background = newWaiter()
	b.holder = b.background
}

// idlePolls is how many empty polls the holder makes, giving way to other
// goroutines in between, before it sleeps. idleSleep bounds the sleep; a
// transport wakes it earlier.
const (
	idlePolls = 4
	idleSleep = time.Second
)

// pokeLocked makes w look again, wherever it is.
func (c *Communicator) pokeLocked(w *waiter) (wake bool) {
	select {
	case w.poked <- struct{}{}:
	default:
	}
	if c.baton.holder == w && c.baton.sleeping {
		c.baton.sleeping = false
		return true
	}
	return false
}

// signal makes all waiting calls look at their conditions again.
func (c *Communicator) signal() {
	c.mu.Lock()
	wake := false
	for _, w := range c.baton.waiting {
		wake = c.pokeLocked(w) || wake
	}
	c.mu.Unlock()
	if wake {
		c.t.Wake()
	}
}

// kick wakes the holder without giving it anything to do but look around.
func (c *Communicator) kick() { c.submit(func() {}) }

// submit runs fn under the baton soon.
func (c *Communicator) submit(fn func()) {
	c.mu.Lock()
	c.submitLocked(fn)
	c.mu.Unlock()
}

// request asks mem for what Resource.Request does; the answer is taken under the
// baton. One that comes after the end is nobody's, and given back.
func (c *Communicator) request(mem *buffer.Resource, size int64, order []buffer.MemType, fn func(*buffer.Reservation, error)) (cancel func()) {
	return mem.Request(size, order, func(res *buffer.Reservation, err error) {
		c.mu.Lock()
		if c.ended {
			c.mu.Unlock()
			res.Release()
			return
		}
		c.submitLocked(func() { fn(res, err) })
		c.mu.Unlock()
	})
}

// end runs what is still queued, and lets nothing more be.
func (c *Communicator) end() {
	for {
		c.mu.Lock()
		c.ended = len(c.cmds) == 0
		ended := c.ended
		c.mu.Unlock()
		if ended {
			return
		}
		c.runCommands()
	}
}

func (c *Communicator) submitLocked(fn func()) {
	c.cmds = append(c.cmds, fn)
	c.rouseLocked()
}

// rouseLocked wakes a sleeping holder. Wake neither blocks nor calls back.
func (c *Communicator) rouseLocked() {
	if c.baton.sleeping {
		c.baton.sleeping = false
		c.t.Wake()
	}
}

// notify tells the core that p has something for dst.
func (c *Communicator) notify(p *Port, dst Rank) {
	c.mu.Lock()
	c.notified = append(c.notified, notice{p, dst})
	c.rouseLocked()
	c.mu.Unlock()
}

// wait drives progress, or lets another goroutine drive, until done reports
// true or ctx ends.
func (c *Communicator) wait(ctx context.Context, done func() bool) error {
	if done() {
		return nil
	}
	w := newWaiter()
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		wake := c.pokeLocked(w)
		c.mu.Unlock()
		if wake {
			c.t.Wake()
		}
	})
	defer stop()
	c.enter(w)
	defer c.leave(w)
	for {
		if done() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			if cause := context.Cause(ctx); cause != err {
				return fmt.Errorf("%w: %w", err, cause)
			}
			return err
		}
		c.mu.Lock()
		mine, over := c.baton.holder == w, c.baton.over
		c.mu.Unlock()
		switch {
		case over:
			return ErrClosed
		case mine:
			c.tick(w)
		default:
			<-w.poked
		}
	}
}

// enter registers w; if only the background goroutine drives, it is asked to
// hand over.
func (c *Communicator) enter(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.baton
	b.waiting = append(b.waiting, w)
	if b.holder == b.background && c.pokeLocked(b.background) {
		c.t.Wake()
	}
}

// leave takes w off the list and passes the baton on if w holds it.
func (c *Communicator) leave(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.baton
	for i, x := range b.waiting {
		if x == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			break
		}
	}
	if b.holder == w {
		c.passLocked()
	}
}

// passLocked names the next holder: a waiting call, else the background.
func (c *Communicator) passLocked() {
	b := &c.baton
	b.holder = b.background
	if len(b.waiting) > 0 {
		b.holder = b.waiting[0]
	}
	c.pokeLocked(b.holder)
}

// background drives while nobody waits.
func (c *Communicator) background() {
	defer close(c.stopped)
	w := c.baton.background
	for {
		c.mu.Lock()
		b := &c.baton
		if b.holder == w && len(b.waiting) > 0 {
			c.passLocked()
		}
		mine, stopping := b.holder == w, b.stopping
		c.mu.Unlock()
		switch {
		case stopping && mine:
			c.runCommands()
			return
		case mine:
			c.tick(w)
		default:
			<-w.poked
		}
	}
}

// stop ends the background goroutine and every call that still waits.
func (c *Communicator) stop() {
	c.mu.Lock()
	c.baton.stopping = true
	c.mu.Unlock()
	c.mail.fail(ErrClosed)
	c.submit(func() { c.core.barriers.fail(); c.signal() })
	c.mu.Lock()
	if c.pokeLocked(c.baton.background) {
		c.t.Wake()
	}
	c.mu.Unlock()
	<-c.stopped
	c.mu.Lock()
	c.baton.over = true
	for _, w := range c.baton.waiting {
		c.pokeLocked(w)
	}
	c.mu.Unlock()
}

// tick makes one step of progress: commands, sends, events. With nothing to do
// it sleeps until the transport, a command or a poke ends the sleep.
func (c *Communicator) tick(w *waiter) {
	k := c.core
	for polls := 0; ; polls++ {
		busy := c.runCommands()
		did, err := k.flush(c.t)
		if err != nil {
			k.abortAll(k.info.Rank, err)
		}
		n := c.poll(0)
		k.settle(c)
		if busy || did || n > 0 {
			return
		}
		if polls < idlePolls {
			runtime.Gosched()
			continue
		}
		k.idle()
		if c.sleep(w) {
			c.poll(idleSleep)
			c.mu.Lock()
			c.baton.sleeping = false
			c.mu.Unlock()
		}
		return
	}
}

// sleep reports whether the holder may block: nothing was queued or poked
// since it last looked.
func (c *Communicator) sleep(w *waiter) bool {
	if c.core.busy() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.poked:
		return false
	default:
	}
	if len(c.cmds) > 0 || len(c.notified) > 0 {
		return false
	}
	c.baton.sleeping = true
	return true
}

// runCommands runs what other goroutines have queued.
func (c *Communicator) runCommands() bool {
	c.mu.Lock()
	cmds, notes := c.cmds, c.notified
	c.cmds, c.spare = c.spare[:0], nil
	c.notified = nil
	c.mu.Unlock()
	for _, n := range notes {
		c.core.activate(n.p, c.core.peers[n.dst])
	}
	for i, fn := range cmds {
		fn()
		cmds[i] = nil
	}
	c.spare = cmds[:0]
	return len(cmds) > 0 || len(notes) > 0
}

// poll takes the transport's events into the core.
func (c *Communicator) poll(max time.Duration) int {
	n, err := c.t.Poll(c.events, max)
	for i := range c.events[:n] {
		c.core.handle(&c.events[i])
		c.events[i] = Event{}
	}
	if err != nil {
		c.core.abortAll(c.info.Rank, err)
	}
	return n
}
