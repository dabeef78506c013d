package comm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-engine/sluice/buffer"
)

// world is a job whose ranks are Communicators without a background goroutine,
// on transports that keep everything under way until a test delivers it. What
// happens is written to out, one line each.
type world struct {
	t     testing.TB
	nodes []*node
	way   []*flight // under way, oldest first
	sent  []*frame  // every frame so far, by number
	out   strings.Builder
}

// node is one rank; it is the Transport of its own Communicator.
type node struct {
	w      *world
	c      *Communicator
	mem    *buffer.Resource
	info   Info
	events []Event // delivered, to be polled
	pipes  []*pipe // in the order of opening
	holds  []*buffer.Reservation

	barriers []*barrier // entered and not yet ended
	entered  int        // barriers before those
	left     bool       // has reported that the closing protocol ended
}

// frame is one posted frame. Its payload is announced until it is fetched.
type frame struct {
	from, to Rank
	cookie   uint64
	head     []byte
	body     Region
	fake     []byte // payload of a forged frame
	size     int64  // announced
	orphan   bool   // forged or a copy: nobody waits for its end
}

// flight is something under way: frame n, its fetch (np) or the end of its send
// (ns).
type flight struct {
	name string
	to   Rank
	kind kind // of the frame
	act  func(n *node)
}

// number is that of the frame.
func (f *flight) number() uint64 {
	no, _ := strconv.ParseUint(strings.TrimRight(f.name, "ps"), 10, 64) // names are ours
	return no
}

// worldConfig says how the ranks of a world are made.
type worldConfig struct {
	ranks    int
	limits   []int64 // of host memory by rank; 0: unlimited
	handOver bool
	maxHead  int
	comm     Config
}

func newWorld(t testing.TB, cfg worldConfig) *world {
	w := &world{t: t}
	arena := buffer.NewArena()
	for r := range cfg.ranks {
		var bc buffer.Config
		if cfg.limits[r] > 0 {
			bc.Limits[buffer.Host] = buffer.Bytes(cfg.limits[r])
		}
		mem, err := arena.NewResource(nil, nil, bc)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{w: w, mem: mem, info: Info{
			Rank: Rank(r), Size: cfg.ranks, Name: "test", Host: fmt.Sprint("host", r),
			Epoch: 7, HandsOver: cfg.handOver, MaxHead: cfg.maxHead,
		}}
		n.c = newQuietCommunicator(t, n, mem, cfg.comm)
		w.nodes = append(w.nodes, n)
	}
	t.Cleanup(w.close)
	for _, n := range w.nodes {
		w.settle(n)
	}
	return w
}

// newQuietCommunicator is New without the goroutine that makes progress.
func newQuietCommunicator(t testing.TB, n *node, mem *buffer.Resource, cfg Config) *Communicator {
	c, err := assemble(n, mem, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.core.failed = func(err error) {
		n.say("job failed: %v", err)
		c.setFailed(err)
	}
	return c
}

// settle lets n do all it can do without the others.
func (w *world) settle(n *node) {
	for range 100_000 {
		busy := n.c.runCommands()
		did, err := n.c.core.flush(n)
		if err != nil {
			n.c.core.abortAll(n.info.Rank, err)
		}
		polled := n.c.poll(0)
		n.c.core.settle(n.c)
		if !busy && !did && polled == 0 {
			n.sayEnds()
			return
		}
	}
	w.t.Fatalf("rank %d does not come to rest", n.info.Rank)
}

// sayEnds reports the waits of callers that have ended.
func (n *node) sayEnds() {
	for len(n.barriers) > 0 && n.barriers[0].done.Load() {
		how := "through"
		if n.barriers[0].broken.Load() {
			how = "thrown out of"
		}
		n.say("%s barrier %d", how, n.entered)
		n.barriers = n.barriers[1:]
		n.entered++
	}
	if !n.left && n.c.baton.left.Load() {
		n.left = true
		n.say("left")
	}
}

// deliver gives the flights to their ranks, all at once, and lets those work.
func (w *world) deliver(fs []*flight) {
	for _, f := range fs {
		i := slices.Index(w.way, f)
		w.way = slices.Delete(w.way, i, i+1)
		f.act(w.nodes[f.to])
	}
	for _, n := range w.nodes {
		w.settle(n)
	}
}

// close ends everything as Communicator.Close does after the transport is
// closed; nothing may be left then.
func (w *world) close() {
	for _, n := range w.nodes {
		w.settle(n)
		n.c.core.teardown()
		n.c.mail.fail(ErrClosed)
		n.c.credit.Release()
		for _, p := range n.pipes {
			p.out.Drop()
			p.release()
		}
		for len(n.holds) > 0 { // what is free then may be wanted
			n.free()
		}
	}
	for r, n := range w.nodes {
		if err := n.mem.Close(); err != nil {
			w.t.Errorf("rank %d: memory is left: %v", r, err)
		}
	}
}

// say writes one line of the transcript.
func (n *node) say(format string, args ...any) {
	fmt.Fprintf(&n.w.out, "%d: %s\n", n.info.Rank, fmt.Sprintf(format, args...))
}

// Info implements Transport.
func (n *node) Info() Info { return n.info }

// Post implements Transport: everything is under way from now on.
func (n *node) Post(sends []Send) (int, error) {
	for _, s := range sends {
		n.w.launch(&frame{
			from: n.info.Rank, to: s.To, cookie: s.Cookie,
			head: append([]byte(nil), s.Head...), body: s.Body, size: s.Body.Len,
		}, "")
	}
	return len(sends), nil
}

// launch puts a frame under way.
func (w *world) launch(f *frame, note string) {
	no := len(w.sent) + 1
	w.sent = append(w.sent, f)
	fmt.Fprintf(&w.out, "%d>%d #%d %s%s\n", f.from, f.to, no, describe(f.head, f.size), note)
	var h header
	_ = h.decode(f.head) // forged ones may be broken
	w.way = append(w.way, &flight{name: fmt.Sprint(no), to: f.to, kind: h.kind, act: func(n *node) {
		n.events = append(n.events, Event{Kind: EventArrived, Peer: f.from, Token: uint64(no), Size: f.size, Head: f.head})
	}})
}

// Pull implements Transport: the fetch is under way.
func (n *node) Pull(p Pull) error {
	if p.Token == 0 || p.Token > uint64(len(n.w.sent)) {
		return fmt.Errorf("pull of token %d", p.Token)
	}
	f := n.w.sent[p.Token-1]
	if f.size == 0 || f.to != n.info.Rank {
		return fmt.Errorf("pull of frame %d, which has no payload for rank %d", p.Token, n.info.Rank)
	}
	verb := "pull"
	if p.Into == nil && p.Dst.Len == 0 {
		verb = "drop"
	}
	n.say("%s #%d", verb, p.Token)
	n.w.way = append(n.w.way, &flight{name: fmt.Sprintf("%dp", p.Token), to: f.to, act: func(n *node) { n.fetched(f, p) }})
	return nil
}

// fetched ends a fetch and puts the word of it to the sender under way.
func (n *node) fetched(f *frame, p Pull) {
	pulled := Event{Kind: EventPulled, Peer: f.from, Token: p.Token}
	switch {
	case p.Into != nil:
		pulled.Data = f.body.Buf
		pulled.Err = p.Into.Adopt(f.body.Buf)
	case p.Dst.Len > 0:
		src := f.fake
		if f.body.Buf != nil {
			src = hostBytes(f.body.Buf)[f.body.Off:]
		}
		copy(hostBytes(p.Dst.Buf)[p.Dst.Off:][:p.Dst.Len], src)
	default:
		pulled.Err = ErrDropped
	}
	n.events = append(n.events, pulled)
	if !f.orphan {
		n.w.endSend(p.Token, pulled.Err)
	}
}

// broken ends a fetch with an error at both ends.
func (n *node) broken(f *flight) {
	no := f.number()
	err := errors.New("link down")
	sent := n.w.sent[no-1]
	n.events = append(n.events, Event{Kind: EventPulled, Peer: sent.from, Token: no, Err: err})
	if !sent.orphan {
		n.w.endSend(no, err)
	}
}

// endSend puts the end of a send under way.
func (w *world) endSend(no uint64, err error) {
	f := w.sent[no-1]
	w.way = append(w.way, &flight{name: fmt.Sprintf("%ds", no), to: f.from, act: func(n *node) {
		n.events = append(n.events, Event{Kind: EventSent, Peer: f.to, Cookie: f.cookie, Err: err})
	}})
}

// Poll implements Transport.
func (n *node) Poll(ev []Event, _ time.Duration) (int, error) {
	k := copy(ev, n.events)
	n.events = slices.Delete(n.events, 0, k)
	return k, nil
}

// Wake implements Transport; nobody sleeps.
func (n *node) Wake() {}

// Close implements Transport.
func (n *node) Close() error { return nil }
