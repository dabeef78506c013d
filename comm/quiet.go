package comm

import (
	"encoding/binary"
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
)

// Memory that can never come free. A rank that waits for memory may be waiting
// for its own callers (they hold buffers, or have a complete partition to
// extract), for a transfer under way, or for another rank that waits itself.
// Only if every rank waits in the last way is nobody going to free anything.
//
// A rank is quiet when nothing local can free memory: callers hold no buffers,
// each collective is stalled (all its inserters are blocked or have finished,
// and nothing complete waits for extraction), no fetch is under way and no
// operation is known that only this rank has not opened. That all ranks are
// quiet at one moment, with nothing on the way between them, is found by the
// four-counter method (Mattern, "Algorithms for distributed termination
// detection", Distributed Computing 2, 1987): two rounds of questions; if all
// answers say quiet, the sums of frames sent and received are equal, and the
// second round repeats the first number for number, then nothing moved in
// between. Questions are asked only by a rank that waits for memory and has
// nothing else to do; a rank that answers "not quiet" tells the asker when
// that has changed. No clock is involved, and a slow consumer is not an error.

// answer is one rank's state in one round.
type answer struct {
	quiet    bool
	version  uint64 // of the rank's memory account
	sent     uint64
	received uint64
}

const answerSize = 1 + 3*8

func (a answer) encode() []byte {
	b := make([]byte, 1, answerSize)
	if a.quiet {
		b[0] = 1
	}
	le := binary.LittleEndian
	b = le.AppendUint64(b, a.version)
	b = le.AppendUint64(b, a.sent)
	return le.AppendUint64(b, a.received)
}

func decodeAnswer(b []byte) (answer, error) {
	if len(b) != answerSize || b[0] > 1 {
		return answer{}, fmt.Errorf("%w: answer of %d bytes", errFrame, len(b))
	}
	le := binary.LittleEndian
	return answer{b[0] == 1, le.Uint64(b[1:]), le.Uint64(b[9:]), le.Uint64(b[17:])}, nil
}

// quietCheck is the state of the check on one rank, as asker and as answerer.
type quietCheck struct {
	round   uint64
	asking  bool
	missing int // answers
	now     []answer
	last    []answer // of the round before, if all of it was quiet
	tried   answer   // own state at the last check that failed
	hinted  bool     // a rank that was not quiet has become so
	waiting []bool   // ranks to tell when this one becomes quiet
}

func (q *quietCheck) init(size int) {
	q.now = make([]answer, size)
	q.waiting = make([]bool, size)
}

// own returns this rank's state. Frames from and to ranks that have left are
// nobody's to wait for.
func (k *core) own() answer {
	a := answer{quiet: k.isQuiet(), version: k.mem.Version()}
	for pe := range k.others() {
		if !pe.left {
			a.sent += pe.workSent
			a.received += pe.workGot
		}
	}
	return a
}

func (k *core) isQuiet() bool {
	if k.mem.Usage(buffer.Host).Held[buffer.HeldByCaller] > 0 || len(k.pulling) > 0 || len(k.pulls) > 0 || len(k.out) > 0 {
		return false
	}
	for key, e := range k.early {
		if len(e.opens) > 0 && !k.gens.past(key) {
			return false
		}
	}
	blocked := k.mem.Waiting().Callers > 0
	for _, p := range k.ports {
		if p.err == nil && !p.closed && !p.h.Stalled(blocked) {
			return false
		}
	}
	return true
}

// idle is called when the rank has nothing to do but wait.
func (k *core) idle() {
	q := &k.quiet
	if k.err != nil {
		// Nobody answers any more, and nothing more will come free.
		if w := k.mem.Waiting(); w.Callers+w.Requests > 0 && k.isQuiet() {
			k.mem.FailWaiters(k.err)
		}
		return
	}
	if q.asking {
		return
	}
	for r, w := range q.waiting {
		if w && k.isQuiet() {
			q.waiting[r] = false
			k.urgent(k.peers[r], header{kind: kindProbe}, nil)
		}
	}
	wait := k.mem.Waiting()
	if wait.Callers+wait.Requests == 0 {
		return
	}
	own := k.own()
	if !own.quiet || own == q.tried && !q.hinted {
		return
	}
	q.last = nil
	k.ask()
}

// ask starts a round. Round numbers start at 1; 0 is a hint.
func (k *core) ask() {
	q := &k.quiet
	q.asking, q.hinted = true, false
	q.round++
	q.missing = 0
	clear(q.now)
	for pe := range k.others() {
		if pe.left {
			q.now[pe.rank].quiet = true
			continue
		}
		q.missing++
		k.urgent(pe, header{kind: kindProbe, seq: q.round}, nil)
	}
	q.now[k.info.Rank] = k.own()
	k.judge()
}

// peerLeft ends a round that waits for a rank that has left.
func (q *quietCheck) peerLeft() { q.asking, q.hinted = false, true }

// probed answers a question, or takes a hint.
func (k *core) probed(pe *peer, h header) {
	if h.seq == 0 {
		k.quiet.hinted = true
		return
	}
	a := k.own()
	k.quiet.waiting[pe.rank] = !a.quiet
	k.urgent(pe, header{kind: kindProbeReply, seq: h.seq}, a.encode())
}

func (k *core) probeReplied(pe *peer, h header, body []byte) error {
	a, err := decodeAnswer(body)
	if err != nil {
		return err
	}
	q := &k.quiet
	if !q.asking || h.seq != q.round || pe.left {
		return nil
	}
	q.now[pe.rank] = a
	q.missing--
	k.judge()
	return nil
}

// judge looks at a complete round.
func (k *core) judge() {
	q := &k.quiet
	if q.missing > 0 {
		return
	}
	q.asking = false
	own := k.own()
	quiet, sent, received := true, uint64(0), uint64(0)
	for _, a := range q.now {
		quiet = quiet && a.quiet
		sent += a.sent
		received += a.received
	}
	switch {
	case !quiet || own != q.now[k.info.Rank]:
		q.tried, q.last = q.now[k.info.Rank], nil
	case sent == received && equalAnswers(q.now, q.last):
		want := k.mem.Waiting().Smallest
		k.broadcast(header{kind: kindStarved, data: uint64(want)}, nil)
		k.starved(k.info.Rank, want)
	default:
		q.last = append(q.last[:0], q.now...)
		k.ask()
	}
}

func equalAnswers(a, b []answer) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// starved ends the running operations, because rank by waits for want bytes
// that can never come free. Each rank reports its own numbers.
func (k *core) starved(by Rank, want int64) {
	err := k.mem.NoMemory(buffer.Host, want, "")
	for _, p := range k.ports {
		if p.op != mailOp && !p.complete {
			k.failPort(p, by, err)
		}
	}
	k.mem.FailWaiters(err)
}
