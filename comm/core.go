package comm

import (
	"math"

	"github.com/sluice-engine/sluice/buffer"
)

// settings are the resolved numbers that the core works with.
type settings struct {
	window    int   // payloads posted to one peer at a time
	wireBytes int64 // bytes posted over all peers, at least one payload
	coalesce  int   // a message up to this many bytes is sent in a batch
	batch     int   // bytes of a batch
	credit    int   // bytes of eager frames a peer may have on the way to us
	segment   int64 // our proposal for the segment size; the smallest of all ranks counts
}

// core is the protocol of one rank as a state machine: commands and transport
// events go in, sends and pulls come out. It has no goroutines, no locks and no
// clock; the holder of the progress baton calls it (rule C2).
type core struct {
	info Info
	set  settings
	mem  *buffer.Resource
	// request is Communicator.request.
	request func(mem *buffer.Resource, size int64, order []buffer.MemType, fn func(*buffer.Reservation, error)) (cancel func())
	// signal tells waiting calls that something they wait for may have changed.
	signal func()
	// failed publishes that the job has ended.
	failed func(error)
	// gone reports that a peer has left and nothing of it is on its way.
	gone func(Rank)
	// removed reports a port that has no more work on this rank.
	removed func(*Port)

	peers   []*peer
	hellos  int   // peers whose hello has come
	segment int64 // agreed segment size, once all hellos have come
	maxHead int   // agreed head size
	ports   map[portKey]*Port
	early   map[portKey]*earlyOp
	gens    genTable
	pulling map[uint64]*fetch // by token
	asm     map[asmKey]*assembly

	out   []Send // to be posted
	pulls []Pull // to be started
	slots []slot // by cookie; 0 is unused
	free  []uint64

	wireBytes int64 // posted and not yet ended
	barriers  barrierSet
	quiet     quietCheck
	closing   bool // this rank wants to leave
	saidBye   bool
	published int // hellos that settle has shown to other goroutines
	err       error

	stats coreStats
}

// coreStats is copied out by Communicator.Stats.
type coreStats struct {
	copied    int64 // payload bytes that a Pull copied
	coalesced int64 // bytes of small messages packed into batches
	dropped   int64 // frames that were refused as stale or duplicate
	sentTo    []int64
	parked    int // announcements that wait for memory now
}

type portKey struct {
	op  OpID
	gen uint32
}

// peer is what this rank knows of another one.
type peer struct {
	rank     Rank
	hello    *hello
	urgent   [][]byte // frames outside the credit, ready to post
	eager    [][]byte // frames that wait for credit
	credit   int      // bytes we may still send to it eagerly
	owed     int      // bytes of its frames that we have used up and not given back
	held     int      // bytes of its eager frames that came early
	inflight int      // posted payloads
	active   []*Port  // ports that have something for it
	dirty    bool     // fill has to look at it
	sent     uint64   // frames to it, queued ones outside the credit included
	got      uint64   // frames from it
	workSent uint64   // of those, the ones that carry work
	workGot  uint64
	bye      bool   // it has said goodbye,
	last     uint64 // after this many frames
	left     bool   // goodbye, and all frames before it are here
	aborted  bool   // it has told us that the job is over
	down     bool
}

// farewell reports whether a peer has said goodbye and all that it sent before
// is here.
func (pe *peer) farewell() bool { return pe.bye && pe.hello != nil && pe.got >= pe.last }

// slot is one posted send that has a payload.
type slot struct {
	port  *Port
	peer  *peer
	msg   *posted
	bytes int64
}

// posted is the payload of a message, shared by its segments.
type posted struct {
	buf  *buffer.Buffer
	left int // segments posted or still to post
	size int64
}

func newCore(info Info, set settings, mem *buffer.Resource) *core {
	k := &core{
		info: info, set: set, mem: mem,
		ports:   map[portKey]*Port{},
		early:   map[portKey]*earlyOp{},
		gens:    genTable{next: map[OpID]uint32{}},
		pulling: map[uint64]*fetch{},
		asm:     map[asmKey]*assembly{},
		slots:   make([]slot, 1),
	}
	k.published = -1
	k.stats.sentTo = make([]int64, info.Size)
	k.barriers.init()
	k.quiet.init(info.Size)
	for r := range info.Size {
		k.peers = append(k.peers, &peer{rank: Rank(r)})
	}
	return k
}

// start queues the hellos; with one rank there is nothing to agree on.
func (k *core) start() {
	k.segment, k.maxHead = k.set.segment, k.info.MaxHead
	for pe := range k.others() {
		k.urgent(pe, header{kind: kindHello}, k.ownHello().encode())
	}
}

// others yields all peers, the next rank first, so that ranks do not all turn
// to rank 0 at once.
func (k *core) others() func(yield func(*peer) bool) {
	return func(yield func(*peer) bool) {
		for i := 1; i < k.info.Size; i++ {
			if !yield(k.peers[(int(k.info.Rank)+i)%k.info.Size]) {
				return
			}
		}
	}
}

// agreed reports whether all hellos have come.
func (k *core) agreed() bool { return k.hellos == k.info.Size-1 }

// urgent queues a frame that travels outside the credit.
func (k *core) urgent(pe *peer, h header, body []byte) {
	if pe.down || pe.rank == k.info.Rank {
		return
	}
	h.epoch = k.info.Epoch
	pe.urgent = append(pe.urgent, h.frame(body))
	pe.sent++
	pe.dirty = true
}

// broadcast queues an urgent frame to every other rank.
func (k *core) broadcast(h header, body []byte) {
	for pe := range k.others() {
		k.urgent(pe, h, body)
	}
}

// flush turns queued work into sends, and hands sends and pulls to t. It
// reports whether there was anything to do.
func (k *core) flush(t Transport) (bool, error) {
	for pe := range k.others() {
		if pe.dirty {
			k.fill(pe)
		}
	}
	did := len(k.out) > 0 || len(k.pulls) > 0
	if len(k.out) > 0 {
		n, err := t.Post(k.out)
		if err != nil {
			return did, err
		}
		rest := copy(k.out, k.out[n:])
		clear(k.out[rest:])
		k.out = k.out[:rest]
	}
	for i, p := range k.pulls {
		if err := t.Pull(p); err != nil {
			return did, err
		}
		k.pulls[i] = Pull{}
	}
	k.pulls = k.pulls[:0]
	return did, nil
}

// handle takes one transport event.
func (k *core) handle(ev *Event) {
	switch ev.Kind {
	case EventArrived:
		k.arrived(ev)
	case EventPulled:
		k.pulled(ev)
	case EventSent:
		k.sendEnded(ev.Cookie, ev.Err)
	case EventDown:
		pe := k.peers[ev.Peer]
		if pe.down {
			break
		}
		pe.down, pe.dirty = true, true
		if pe.farewell() {
			break
		}
		cause := ev.Err
		if cause == nil {
			cause = ErrPeerClosed
		}
		k.abortAll(ev.Peer, cause)
	}
}

// fail poisons the whole Communicator: every operation ends and no new one is
// taken. rank is the one at fault.
func (k *core) fail(rank Rank, cause error) {
	if k.err != nil {
		return
	}
	k.err = &PeerError{Rank: rank, Host: k.hostOf(rank), Op: NoOp, Cause: cause}
	k.failed(k.err)
	for _, p := range k.ports {
		k.failPort(p, rank, cause)
		k.maybeRemove(p) // it may have failed before, and waited for the others
	}
	k.barriers.fail()
	k.mem.FailWaiters(k.err)
	k.signal()
}

// broken ends the job because a peer sent something that no correct rank
// sends, and tells the others why.
func (k *core) broken(src Rank, cause error) { k.abortAll(src, cause) }

// abortAll ends the job on every rank.
func (k *core) abortAll(rank Rank, cause error) {
	if k.err != nil {
		return
	}
	k.broadcast(header{kind: kindAbortJob, part: uint32(rank)}, encodeCause(cause))
	k.fail(rank, cause)
}

// takeSlot returns the cookie for a send with a payload.
func (k *core) takeSlot(s slot) uint64 {
	if n := len(k.free); n > 0 {
		c := k.free[n-1]
		k.free = k.free[:n-1]
		k.slots[c] = s
		return c
	}
	k.slots = append(k.slots, s)
	return uint64(len(k.slots) - 1)
}

// limitOf is the host memory this rank may use; unlimited is a large number.
func limitOf(mem *buffer.Resource) int64 {
	l := mem.Usage(buffer.Host).Limit
	if l < 0 {
		return math.MaxInt64
	}
	return l
}
