package comm

import (
	"encoding/binary"
	"errors"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
)

// FuzzRank feeds rank 1 of three with frames that ranks 0 and 2 may have made or
// not, in any order, between calls of its own. Whatever they say, the rank comes
// to rest, takes no more memory than its limit and than the bytes that have
// come allow, can leave when the others are gone, and has an empty account
// after that.
func FuzzRank(f *testing.F) {
	for _, seed := range rankSeeds() {
		f.Add(slices.Concat(seed...))
	}
	var sentCauses [][]byte
	for _, err := range causes() {
		sentCauses = append(sentCauses, encodeCause(err))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4<<10 {
			return // more of the same
		}
		fr := newFuzzedRank(t, in, sentCauses)
		before := heapAllocated()
		for len(fr.in) > 0 {
			fr.step()
		}
		fr.leave()
		// Transcripts, causes and reports are a multiple of what was sent; a
		// length that is believed is millions.
		sent := fr.pushed
		for _, f := range fr.w.sent {
			sent += int64(len(f.head))
		}
		if n := int64(heapAllocated() - before); n > 4<<20+64*sent {
			t.Errorf("%d bytes allocated for %d bytes of frames", n, sent)
		}
		if u := fr.n.mem.Usage(buffer.Host); u.Peak > fuzzedLimit {
			t.Errorf("peak of %d bytes, the limit is %d", u.Peak, fuzzedLimit)
		}
	})
}

const fuzzedLimit = 1 << 20

// fuzzedRank reads what happens to rank 1 from in.
type fuzzedRank struct {
	t  *testing.T
	in []byte
	w  *world
	n  *node
	// causes are bodies of abort frames.
	causes [][]byte
	// pushed is the bytes of metadata that rank 1 wanted to send.
	pushed int64
}

func newFuzzedRank(t *testing.T, in []byte, causes [][]byte) *fuzzedRank {
	w := newWorld(t, worldConfig{ranks: 3, limits: []int64{fuzzedLimit, fuzzedLimit, fuzzedLimit}, maxHead: 8 << 10})
	fr := &fuzzedRank{t: t, in: in, w: w, n: w.nodes[1], causes: causes}
	start := fr.byte()
	if start&noHellos == 0 {
		w.deliver(fr.way(func(f *flight) bool { return f.to == 1 }))
	}
	if start&notOpen == 0 {
		for _, n := range w.nodes {
			if _, err := n.open(1, nil); err != nil {
				t.Fatal(err)
			}
			w.settle(n)
		}
		w.deliver(fr.way(func(f *flight) bool { return f.to == 1 && f.kind == kindOpen }))
	}
	w.way = fr.way(func(f *flight) bool { return f.to == 1 })
	return fr
}

// How rank 1 starts: without flags all hellos have come and operation 1 is open.
const (
	noHellos = 1 << iota
	notOpen
)

// Steps: the first byte of each.
const (
	stepForge   = iota // what forge reads
	stepDeliver        // which of those to rank 1
	stepBreak          // the same; a fetch fails
	stepFetch          // which of the frames that rank 1 sent; its peer fetches or refuses it
	stepOpen           // an operation
	stepCall           // what call reads
	stepDown           // a peer
	steps
)

func (fr *fuzzedRank) step() {
	switch fr.byte() % steps {
	case stepForge:
		fr.forge()
	case stepDeliver:
		if fs := fr.way(func(f *flight) bool { return f.to == 1 }); len(fs) > 0 {
			fr.w.deliver(fs[int(fr.byte())%len(fs):][:1])
		}
	case stepBreak:
		if fs := fr.way(func(f *flight) bool { return f.to == 1 && strings.HasSuffix(f.name, "p") }); len(fs) > 0 {
			fs = fs[int(fr.byte())%len(fs):][:1]
			fs[0].act = func(n *node) { n.broken(fs[0]) }
			fr.w.deliver(fs)
		}
	case stepFetch:
		if fs := fr.way(func(f *flight) bool { return f.to != 1 }); len(fs) > 0 {
			fr.fetch(fs[int(fr.byte())%len(fs)])
		}
	case stepOpen:
		_, err := fr.n.open(fr.op(), nil)
		_ = err // in use already: no step
	case stepCall:
		fr.call()
	case stepDown:
		fr.down(Rank(fr.byte() % 2 * 2))
	}
	fr.w.settle(fr.n)
	fr.n.c.core.idle()
	fr.w.settle(fr.n)
}

// way returns what is under way and picked.
func (fr *fuzzedRank) way(picked func(*flight) bool) []*flight {
	var fs []*flight
	for _, f := range fr.w.way {
		if picked(f) {
			fs = append(fs, f)
		}
	}
	return fs
}

// fetch ends what rank 1 has sent; peers neither read nor answer it.
func (fr *fuzzedRank) fetch(f *flight) {
	i := slices.Index(fr.w.way, f)
	fr.w.way = slices.Delete(fr.w.way, i, i+1)
	if no := f.number(); fr.w.sent[no-1].size > 0 {
		fr.w.endSend(no, []error{nil, ErrDropped}[fr.byte()%2])
	}
}

// call is one of the calls of rank 1's user.
func (fr *fuzzedRank) call() {
	switch what := fr.byte() % 8; {
	case what == 0:
		fr.n.barrier()
	case what == 1:
		fr.n.c.submit(func() { fr.n.c.core.closing = true })
	case what == 2:
		err := fr.n.hold(int64(fr.byte()) << 12)
		_ = err // no memory: no step
	case what == 3:
		fr.n.want(int64(fr.byte()) << 12)
	case len(fr.n.pipes) == 0:
	case what == 4:
		fr.push(fr.pipe())
	case what == 5:
		fr.pipe().release()
	case what == 6:
		fr.pipe().port.Complete()
	case what == 7:
		fr.pipe().port.Abort(errors.New("gave up"))
	}
}

// push queues some messages: to whom, how many, of which partition, length of
// metadata and payload, and control or not.
func (fr *fuzzedRank) push(p *pipe) {
	to, n, part := Rank(fr.byte()%2*2), fr.byte()%16, uint32(fr.byte())
	meta, data, control := int(fr.byte())<<5, int64(fr.byte())<<10, fr.byte()%2 == 1
	for range n {
		err := p.push(to, part, meta, data, control && data == 0)
		_ = err // no memory, or failed: no step
		fr.pushed += int64(meta)
	}
}

func (fr *fuzzedRank) pipe() *pipe { return fr.n.pipes[int(fr.byte())%len(fr.n.pipes)] }

func (fr *fuzzedRank) down(peer Rank) {
	fr.n.events = append(fr.n.events, Event{Kind: EventDown, Peer: peer})
}

// Lengths of a forged frame that agree with each other, so that more of what
// follows is reached; without them any number does.
const (
	honestMeta = 1 << iota // the metadata follows the header
	honestSize             // the segment has the size that it should have
	honestBody             // the body is one of its kind
)

// forge makes a frame: sender, kind, how honest, operation, generation, number,
// partition, then numbers as needed, and a body with its length before it.
func (fr *fuzzedRank) forge() {
	from := Rank(fr.byte() % 2 * 2)
	kinds := int(kindMeta) + 1
	h := header{kind: kind(int(fr.byte()) % kinds), epoch: 7}
	honest := fr.byte()
	h.op, h.gen = fr.op(), uint32(fr.byte()/128)
	h.seq, h.part = fr.number(), uint32(fr.number())
	h.data, h.seg = fr.number(), uint32(fr.byte())
	var body []byte
	if honest&honestBody != 0 {
		body = fr.body(h.kind)
	} else {
		body = fr.take(int(fr.number() % (fuzzedHead + 1)))
	}
	var size uint64
	switch step := uint64(fr.n.c.core.segment); {
	case h.kind < kindData || h.kind == kindMeta:
	case honest&honestSize == 0:
		size = fr.number() & (1<<62 - 1)
	case h.data > uint64(h.seg)*step:
		size = min(step, h.data-uint64(h.seg)*step)
	}
	if h.meta = uint32(len(body)); honest&honestMeta == 0 {
		h.meta, h.credit = uint32(fr.number()), uint32(fr.number())
	}
	f := &frame{from: from, to: 1, head: h.frame(body), size: int64(size), orphan: true}
	if h.kind == kindBatch {
		f.fake = fr.batch()
	}
	fr.w.launch(f, " (forged)")
}

// fuzzedHead is the largest body.
const fuzzedHead = 8<<10 - HeaderSize

// body returns a correct body for a control frame.
func (fr *fuzzedRank) body(kd kind) []byte {
	switch kd {
	case kindHello:
		h := hello{size: 3, capacity: int64(fr.number()), segment: minSegment, maxHead: minHead, credit: minCredit}
		return h.encode()
	case kindOpen:
		return Fingerprint{Kind: "pipe"}.encode()
	case kindAbort, kindAbortJob:
		return fr.causes[int(fr.byte())%len(fr.causes)]
	case kindProbeReply:
		return answer{quiet: fr.byte()%2 == 1, version: fr.number(), sent: fr.number(), received: fr.number()}.encode()
	}
	return nil
}

// batch returns what starts a forged batch: records with lengths of the input.
func (fr *fuzzedRank) batch() []byte {
	var b []byte
	for range fr.byte() % 4 {
		b = append(b, record(Record{Part: uint32(fr.byte()), Meta: make([]byte, fr.byte()), Data: make([]byte, fr.byte())})...)
	}
	if len(b) > 0 && fr.byte()%2 == 1 {
		b[int(fr.byte())%len(b)] ^= fr.byte()
	}
	return b
}

// byte returns the next byte; 0 after the last.
func (fr *fuzzedRank) byte() byte {
	if len(fr.in) == 0 {
		return 0
	}
	b := fr.in[0]
	fr.in = fr.in[1:]
	return b
}

// number is one byte for small ones, and nine for any.
func (fr *fuzzedRank) number() uint64 {
	b := fr.byte()
	switch {
	case b < 192:
		return uint64(b)
	case b < 255:
		return 1<<(b-192) - 1 // 0, 1, 3, ... 2^62-1
	}
	return binary.LittleEndian.Uint64(append(fr.take(8), 0, 0, 0, 0, 0, 0, 0, 0))
}

func (fr *fuzzedRank) take(n int) []byte {
	n = min(n, len(fr.in))
	b := fr.in[:n:n]
	fr.in = fr.in[n:]
	return b
}

// op is mostly one that rank 1 may open.
func (fr *fuzzedRank) op() OpID {
	return []OpID{1, 1, 2, 3, mailOp, scopedBit | 1, NoOp}[int(fr.byte())%7]
}

// leave ends all: the peers go, what is under way ends, and so does the rank.
func (fr *fuzzedRank) leave() {
	fr.down(0)
	fr.down(2)
	for _, p := range fr.n.pipes {
		p.port.Close(errors.New("the end"))
	}
	fr.n.c.submit(func() { fr.n.c.core.closing = true })
	fr.w.settle(fr.n)
	for len(fr.w.way) > 0 {
		for _, f := range slices.Clone(fr.w.way) {
			switch {
			case f.to != 1:
				fr.fetch(f)
			case strings.HasSuffix(f.name, "p"), strings.HasSuffix(f.name, "s"):
				fr.w.deliver([]*flight{f})
			default: // nothing arrives from a peer that is down
				i := slices.Index(fr.w.way, f)
				fr.w.way = slices.Delete(fr.w.way, i, i+1)
			}
		}
		fr.w.settle(fr.n)
	}
	if !fr.n.left {
		fr.t.Errorf("rank 1 cannot leave:\n%s", fr.w.out.String())
	}
	if live := len(fr.n.c.core.ports) - 1; live > 0 {
		fr.t.Errorf("%d operations are live after the end:\n%s", live, fr.w.out.String())
	}
}

func heapAllocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// forged is what forge reads for one frame; rest is what depends on honest.
type forged struct {
	from, op, seq, part, data, seg byte

	kind   kind
	honest byte
	rest   []byte
}

func (f forged) bytes() []byte {
	b := []byte{stepForge, f.from / 2, byte(f.kind), f.honest, f.op, 0, f.seq, f.part, f.data, f.seg}
	return append(append(b, f.rest...), stepDeliver, 0)
}

// Numbers of an input; see number and op.
const (
	bytes64K  = 192 + 16
	bytes256K = 192 + 18
	bytes4M   = 192 + 22
	opUnknown = 3
	opMail    = 4
)

// rankSeeds are lives of rank 1 of which the fuzzer makes variants.
func rankSeeds() [][][]byte {
	const lengths = honestMeta | honestSize
	control := func(kd kind, rest ...byte) []byte {
		return forged{kind: kd, honest: honestMeta | honestBody, rest: rest}.bytes()
	}
	data := forged{kind: kindData, honest: lengths, part: 3, data: bytes64K, rest: []byte{3, 'a', 'b', 'c'}}
	large, second, small := data, data, data
	large.data, second.data, second.seg, small.data = bytes4M, bytes4M, 1, 0
	parked := data
	parked.data = bytes256K
	parts := forged{kind: kindMeta, rest: []byte{3, 'a', 'b', 'c', 3, 0}}
	batch := forged{kind: kindBatch, honest: lengths, part: 2, data: 56, rest: []byte{0, 2, 5, 3, 8, 6, 0, 8, 0}}
	mail, mails, early := data, batch, data
	mail.op, mails.op, mails.seq, early.op = opMail, opMail, 1, 2
	ack := forged{kind: kindAbortAck, honest: lengths}
	fetch, deliver := []byte{stepFetch, 0, 0, stepDeliver, 0}, []byte{stepDeliver, 0}
	push := []byte{stepCall, 4, 0, 0, 1, 7, 1, 200, 0}
	shorts := []byte{stepCall, 4, 0, 0, 9, 7, 2, 0, 0}
	queued := []byte{stepCall, 4, 0, 0, 4, 7, 1, 200, 0} // more than what is free then
	reply := func(from, round, sent, received byte) []byte {
		return forged{from: from, kind: kindProbeReply, honest: honestMeta | honestBody, seq: round, rest: []byte{1, 0, sent, received}}.bytes()
	}
	hello := func(from byte) []byte {
		return forged{from: from, kind: kindHello, honest: honestMeta | honestBody, rest: []byte{bytes4M}}.bytes()
	}
	open := []byte{0}
	return [][][]byte{
		{{notOpen | noHellos}, hello(0), hello(2)},
		{{noHellos}, data.bytes(), deliver, deliver, deliver},
		{{notOpen}, control(kindOpen), {stepOpen, 0}, data.bytes(), deliver},
		{open, data.bytes(), deliver, small.bytes()},
		{open, large.bytes(), second.bytes(), deliver, {stepBreak, 0}},
		{open, parts.bytes(), forged{kind: kindData, rest: []byte{0, 0, 3, 0}}.bytes()},
		{open, batch.bytes(), deliver},
		{open, mail.bytes(), mails.bytes(), deliver, deliver},
		{{notOpen}, {stepOpen, 2}, early.bytes(), forged{kind: kindOpen, op: 2, honest: honestMeta | honestBody}.bytes(), deliver},
		{open, control(kindAbort, 4), ack.bytes()},
		{open, {stepCall, 7, 0}, ack.bytes()},
		{open, control(kindAbortJob, 5)},
		{open, push, push, fetch, fetch, {stepCall, 6, 0}},
		{open, shorts, shorts, fetch, fetch, {stepCall, 5, 0}},
		{open, push, forged{kind: kindCredit, rest: []byte{0, 0, 100}}.bytes()},
		{open, {stepCall, 0}, forged{kind: kindBarrier, honest: lengths, rest: []byte{0}}.bytes()},
		{{notOpen}, {stepCall, 1}, forged{kind: kindBye, honest: lengths, seq: 1, rest: []byte{0}}.bytes(), {stepDown, 0}},
		{open, {stepCall, 2, 200}, parked.bytes(), {stepCall, 3, 100, stepCall, 5, 0}},
		{open, {stepCall, 2, 200}, parked.bytes(), control(kindAbort, 2)},
		{open, queued, parked.bytes(), reply(0, 1, 1, 5), reply(2, 1, 0, 0), reply(0, 2, 1, 5), reply(2, 2, 0, 0)},
		{open, forged{kind: kindProbe, honest: lengths, seq: 1, rest: []byte{0}}.bytes(), control(kindProbeReply, 1, 2, 3, 4)},
		{open, forged{kind: kindStarved, honest: lengths, data: bytes4M, rest: []byte{0}}.bytes()},
		{open, forged{kind: kindData, op: opUnknown, honest: lengths, rest: []byte{0}}.bytes()},
	}
}
