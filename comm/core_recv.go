package comm

import (
	"errors"
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
)

// inbound is the receiving side of a port from one peer.
type inbound struct {
	opened bool         // its open frame has come and agrees with ours (rule C1)
	early  []earlyFrame // arrived before its open frame
	seen   seqSet
}

// earlyFrame is a frame that overtook the open frame of its operation, or a
// hello. There are at most a window and a credit of them: what was sent under
// credit uses it until the frame is taken.
type earlyFrame struct {
	head  []byte
	token uint64
	size  int64
}

// credit is how much eager credit the frame uses.
func (f *earlyFrame) credit() int {
	if f.size > 0 {
		return 0
	}
	return len(f.head)
}

type asmKey struct {
	port *Port
	src  Rank
	seq  uint64
}

// assembly is a message of which not everything has arrived.
type assembly struct {
	key     asmKey
	h       header
	known   bool // the data, batch or control frame has come; h is whole
	meta    []byte
	parts   map[int][]byte // of long metadata, by offset
	metaGot int
	data    *buffer.Buffer
	res     *buffer.Reservation // granted, while a hand-over is on its way
	cancel  func()
	asked   bool
	granted bool
	dead    bool
	got     seqSet   // segments announced
	waiting []*fetch // announced, no memory yet
	left    int64    // segments not yet pulled
	flying  int      // pulls under way
}

// fetch is one announced payload.
type fetch struct {
	asm   *assembly
	token uint64
	seg   int64
	size  int64
}

// arrived takes one frame. Whatever is wrong with it that a correct peer could
// not have caused ends the job.
func (k *core) arrived(ev *Event) {
	var h header
	if err := h.decode(ev.Head); err != nil {
		k.refuse(ev)
		k.broken(ev.Peer, err)
		return
	}
	pe := k.peers[ev.Peer]
	if h.epoch != k.info.Epoch {
		k.refuse(ev)
		k.broken(ev.Peer, fmt.Errorf("%w: frame of job %08x in job %08x", errFrame, h.epoch, k.info.Epoch))
		return
	}
	if h.credit > 0 {
		if pe.hello == nil || pe.credit+int(h.credit) > pe.hello.credit {
			k.refuse(ev)
			k.broken(ev.Peer, fmt.Errorf("%w: %d bytes of credit given back, more than was used", errFrame, h.credit))
			return
		}
		pe.credit += int(h.credit)
		pe.dirty = true
	}
	pe.got++
	var err error
	if h.kind.counted() {
		pe.workGot++
		err = k.work(pe, h, ev)
	} else {
		if ev.Size > 0 {
			k.refuse(ev)
		}
		err = k.control(pe, h, ev.Head[HeaderSize:])
	}
	if err != nil {
		k.broken(ev.Peer, err)
	}
	k.checkLeft(pe)
}

// refuse drops the payload of a frame, if it has one.
func (k *core) refuse(ev *Event) {
	if ev.Size > 0 {
		k.pulls = append(k.pulls, Pull{Token: ev.Token})
	}
}

// work takes a frame that belongs to an operation.
func (k *core) work(pe *peer, h header, ev *Event) error {
	f := earlyFrame{ev.Head, ev.Token, ev.Size}
	if n := f.credit(); n > 0 && pe.owed+pe.held+n > k.set.credit {
		return fmt.Errorf("%w: more than the %d bytes of credit in use", errFrame, k.set.credit)
	}
	p := k.ports[portKey{h.op, h.gen}]
	if p == nil || p.err != nil || p.complete {
		k.owe(pe, f.credit())
		k.stats.dropped++
		k.refuse(ev)
		return nil
	}
	in := &p.in[pe.rank]
	if !in.opened || !k.agreed() {
		f.head = append([]byte(nil), f.head...)
		pe.held += f.credit()
		in.early = append(in.early, f)
		return nil
	}
	k.owe(pe, f.credit())
	return k.accept(p, pe, h, ev.Head[HeaderSize:], ev.Token, ev.Size)
}

// owe notes that n bytes of the credit that pe has with us are free again.
func (k *core) owe(pe *peer, n int) {
	pe.owed += n
	pe.dirty = pe.dirty || pe.owed >= k.set.credit/2
}

// takeEarly removes the frames of pe that wait for its open frame.
func (k *core) takeEarly(p *Port, pe *peer) []earlyFrame {
	in := &p.in[pe.rank]
	early := in.early
	in.early = nil
	for i := range early {
		n := early[i].credit()
		pe.held -= n
		k.owe(pe, n)
	}
	return early
}

// replay takes the frames that came before they could be judged.
func (k *core) replay(p *Port, pe *peer) error {
	for _, f := range k.takeEarly(p, pe) {
		var h header
		if err := h.decode(f.head); err != nil {
			return err
		}
		if p.err != nil || p.complete {
			k.refuse(&Event{Token: f.token, Size: f.size})
			continue
		}
		if err := k.accept(p, pe, h, f.head[HeaderSize:], f.token, f.size); err != nil {
			return err
		}
	}
	k.maybeRemove(p)
	return nil
}

// accept takes a frame of an open operation whose sender agrees with us.
func (k *core) accept(p *Port, pe *peer, h header, body []byte, token uint64, size int64) error {
	if h.kind == kindBatch && (h.part == 0 || uint64(h.part) > h.data/recordHeader || h.meta > 0) {
		return fmt.Errorf("%w: batch of %d messages in %d bytes, metadata of %d", errFrame, h.part, h.data, h.meta)
	}
	key := asmKey{p, pe.rank, h.seq}
	a := k.asm[key]
	if a == nil {
		n := uint64(1)
		if h.kind == kindBatch {
			n = uint64(h.part)
		}
		if !p.in[pe.rank].seen.add(h.seq, n) {
			k.stats.dropped++
			if size > 0 {
				k.pulls = append(k.pulls, Pull{Token: token})
			}
			return nil
		}
		a = &assembly{key: key}
		k.asm[key] = a
	}
	if h.kind == kindMeta {
		if size > 0 {
			return fmt.Errorf("%w: metadata of message %d with a payload", errFrame, h.seq)
		}
		return k.acceptMeta(a, h, body)
	}
	if (h.data > 0) != (size > 0) {
		return fmt.Errorf("%w: message %d: payload of %d bytes announced with %d", errFrame, h.seq, h.data, size)
	}
	switch {
	case !a.known:
		if err := k.begin(a, h); err != nil {
			return err
		}
	case h.data != a.h.data || h.meta != a.h.meta || h.kind != a.h.kind || h.part != a.h.part:
		return fmt.Errorf("%w: segments of message %d disagree", errFrame, h.seq)
	case size == 0:
		k.stats.dropped++
		return nil
	}
	if size > 0 {
		return k.announced(a, h, body, token, size)
	}
	if err := a.inlineMeta(body); err != nil {
		return err
	}
	k.maybeDeliver(a)
	return nil
}

// inlineMeta takes metadata that came whole with one of the segments.
func (a *assembly) inlineMeta(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if len(body) != int(a.h.meta) || a.metaGot > 0 {
		return fmt.Errorf("%w: message %d: %d of %d bytes of metadata in one frame", errFrame, a.h.seq, len(body), a.h.meta)
	}
	a.meta, a.metaGot = append([]byte(nil), body...), len(body)
	return nil
}

// begin takes the first data frame of a message.
func (k *core) begin(a *assembly, h header) error {
	if a.parts != nil && a.h.meta != h.meta {
		return fmt.Errorf("%w: message %d has %d bytes of metadata, then %d", errFrame, h.seq, a.h.meta, h.meta)
	}
	if h.kind == kindControl && h.data > 0 {
		return fmt.Errorf("%w: message %d: payload of %d bytes", errFrame, h.seq, h.data)
	}
	a.known, a.h = true, h
	if h.data > 0 {
		a.left = segments(int64(h.data), k.segmentSize())
	}
	return nil
}

// acceptMeta takes a part of long metadata. Parts are joined when all are here,
// so that a length alone takes no memory.
func (k *core) acceptMeta(a *assembly, h header, body []byte) error {
	off, total := int(h.data), int(h.meta)
	step := k.maxHead - HeaderSize
	if off >= total || off%step != 0 || len(body) != min(step, total-off) {
		return fmt.Errorf("%w: metadata part at %d of %d bytes in %d", errFrame, off, len(body), total)
	}
	if (a.known || a.parts != nil) && a.h.meta != h.meta || a.meta != nil && a.parts == nil {
		return fmt.Errorf("%w: message %d has %d bytes of metadata, then %d in parts", errFrame, h.seq, a.h.meta, total)
	}
	a.h.meta = h.meta
	if a.parts == nil {
		a.parts = map[int][]byte{}
	}
	if a.parts[off] != nil {
		k.stats.dropped++
		return nil
	}
	a.parts[off] = append([]byte(nil), body...)
	if a.metaGot += len(body); a.metaGot == total {
		a.meta = make([]byte, total)
		for at, part := range a.parts {
			copy(a.meta[at:], part)
		}
	}
	k.maybeDeliver(a)
	return nil
}

// announced takes the announcement of one segment and asks for memory for the
// whole message at the first.
func (k *core) announced(a *assembly, h header, body []byte, token uint64, size int64) error {
	step := k.segmentSize()
	seg := int64(h.seg)
	if seg >= segments(int64(a.h.data), step) || size != min(step, int64(a.h.data)-seg*step) {
		return fmt.Errorf("%w: segment %d of %d bytes in a message of %d", errFrame, seg, size, a.h.data)
	}
	if !a.got.add(uint64(seg), 1) {
		k.stats.dropped++
		k.pulls = append(k.pulls, Pull{Token: token})
		return nil
	}
	if err := a.inlineMeta(body); err != nil {
		return err
	}
	f := &fetch{asm: a, token: token, seg: seg, size: size}
	if a.granted {
		k.pull(f)
		return nil
	}
	a.waiting = append(a.waiting, f)
	if !a.asked {
		a.asked = true
		k.stats.parked++
		var order []buffer.MemType
		if a.h.kind == kindBatch {
			order = []buffer.MemType{buffer.Host}
		}
		a.cancel = k.request(k.mem, int64(a.h.data), order, func(r *buffer.Reservation, err error) { k.placed(a, r, err) })
	}
	return nil
}

// placed takes the answer of the memory request of a message.
func (k *core) placed(a *assembly, r *buffer.Reservation, err error) {
	if a.dead {
		if r != nil {
			r.Release()
		}
		return
	}
	k.stats.parked--
	if err != nil {
		if errors.Is(err, buffer.ErrTooLarge) {
			err = k.mem.NoMemory(buffer.Host, int64(a.h.data), "raise the limit of this rank or send smaller chunks")
		}
		a.asked = false
		k.failPort(a.key.port, k.info.Rank, err)
		return
	}
	a.granted = true
	r.SetHolder(buffer.HeldReceived)
	if k.info.HandsOver {
		a.res = r
	} else {
		a.data, err = r.Alloc(int64(a.h.data), nil)
		r.Release()
		if err != nil {
			k.failPort(a.key.port, k.info.Rank, err)
			return
		}
	}
	for _, f := range a.waiting {
		k.pull(f)
	}
	a.waiting = nil
}

// pull starts to fetch a segment whose memory is there.
func (k *core) pull(f *fetch) {
	p := Pull{Token: f.token, Into: f.asm.res}
	if f.asm.data != nil {
		p.Dst = Region{f.asm.data, f.seg * k.segmentSize(), f.size}
	}
	f.asm.flying++
	k.pulling[f.token] = f
	k.pulls = append(k.pulls, p)
}

// pulled takes the end of a fetch.
func (k *core) pulled(ev *Event) {
	f := k.pulling[ev.Token]
	if f == nil {
		return // a dropped one
	}
	delete(k.pulling, ev.Token)
	a := f.asm
	a.flying--
	if ev.Data != nil {
		a.data = ev.Data
	} else if ev.Err == nil {
		k.stats.copied += f.size
	}
	if a.dead {
		k.discard(a)
		k.maybeRemove(a.key.port)
		return
	}
	if ev.Err != nil {
		k.failPort(a.key.port, a.key.src, ev.Err)
		return
	}
	a.left--
	k.maybeDeliver(a)
}

// maybeDeliver hands a message to its collective once it is whole.
func (k *core) maybeDeliver(a *assembly) {
	if !a.known || a.left > 0 || a.metaGot < int(a.h.meta) {
		return
	}
	delete(k.asm, a.key)
	if a.res != nil {
		a.res.Release()
	}
	p, src := a.key.port, a.key.src
	if a.h.kind == kindBatch {
		b, err := newBatch(a.h.seq, int(a.h.part), a.data)
		if err != nil {
			a.data.Release()
			k.broken(src, err)
			return
		}
		p.h.Batch(src, b)
	} else {
		p.h.Deliver(src, a.h.seq, Message{Part: a.h.part, Meta: a.meta, Data: a.data, Control: a.h.kind == kindControl})
	}
	k.checkLeft(k.peers[src])
}

// kill forgets a message: what is announced is dropped, and what is being
// fetched is freed when the fetch ends.
func (k *core) kill(a *assembly) {
	delete(k.asm, a.key)
	a.dead = true
	if a.asked && !a.granted {
		k.stats.parked--
		a.cancel()
	}
	for _, f := range a.waiting {
		k.pulls = append(k.pulls, Pull{Token: f.token})
	}
	a.waiting = nil
	k.discard(a)
}

// discard frees the memory of a dead message once no fetch writes to it.
func (k *core) discard(a *assembly) {
	if a.flying > 0 {
		return
	}
	if a.res != nil {
		a.res.Release()
		a.res = nil
	}
	if a.data != nil {
		a.data.Release()
		a.data = nil
	}
}
