package comm

import (
	"context"

	"github.com/sluice-engine/sluice/buffer"
)

// outbound is the sending side of a port towards one peer.
type outbound struct {
	gone    bool      // it has left the operation; nothing is sent any more
	active  bool      // listed in peer.active
	seq     uint64    // number of the next message
	pending []Message // taken from the handler, not posted yet
	partly  *partly
}

// partly is a message of which some segments are posted.
type partly struct {
	h    header
	msg  *posted
	next int64 // offset of the next segment
}

// activate puts the port on the peer's list of work.
func (k *core) activate(p *Port, pe *peer) {
	o := &p.out[pe.rank]
	pe.dirty = true
	if !o.active {
		o.active = true
		pe.active = append(pe.active, p)
	}
}

// fill posts to pe whatever its windows allow, ports in turn.
func (k *core) fill(pe *peer) {
	pe.dirty = false
	if pe.down {
		pe.urgent, pe.eager, pe.active = nil, nil, nil
		return
	}
	for _, f := range pe.urgent {
		k.out = append(k.out, Send{To: pe.rank, Head: f})
	}
	pe.urgent = pe.urgent[:0]
	if !k.agreed() {
		return
	}
	k.fillEager(pe)
	for len(pe.active) > 0 && k.room(pe) {
		p := pe.active[0]
		copy(pe.active, pe.active[1:])
		pe.active = pe.active[:len(pe.active)-1]
		p.out[pe.rank].active = false
		if k.sendSome(p, pe) {
			p.out[pe.rank].active = true
			pe.active = append(pe.active, p)
		} else {
			k.maybeRemove(p)
		}
	}
	k.fillEager(pe)
	if pe.owed >= k.set.credit/2 {
		h := header{kind: kindCredit, epoch: k.info.Epoch, credit: uint32(pe.owed)}
		pe.owed = 0
		k.post(pe, Send{Head: h.frame(nil)})
	}
}

// post hands one more frame to the transport.
func (k *core) post(pe *peer, s Send) {
	s.To = pe.rank
	pe.sent++
	k.out = append(k.out, s)
}

// fillEager posts the frames that were waiting for credit.
func (k *core) fillEager(pe *peer) {
	n := 0
	for n < len(pe.eager) && len(pe.eager[n]) <= pe.credit {
		pe.credit -= len(pe.eager[n])
		pe.workSent++
		k.post(pe, Send{Head: pe.eager[n]})
		n++
	}
	clear(pe.eager[:n])
	pe.eager = pe.eager[n:]
}

// room reports whether another payload may be posted to pe.
func (k *core) room(pe *peer) bool {
	return pe.inflight < k.set.window && (k.wireBytes == 0 || k.wireBytes < k.set.wireBytes)
}

// sendSome posts one segment, batch or control message of p to pe, and reports
// whether there may be more.
func (k *core) sendSome(p *Port, pe *peer) bool {
	o := &p.out[pe.rank]
	if !p.in[pe.rank].opened || o.gone {
		return false
	}
	if o.partly != nil {
		k.postSegment(p, pe)
		return true
	}
	more := k.gather(p, pe.rank)
	if len(o.pending) == 0 {
		return more
	}
	if n, size := k.smallRun(o.pending); n > 1 {
		if b := k.pack(o.pending[:n], size); b != nil {
			h := k.header(p, kindBatch, o.seq)
			h.part, h.data = uint32(n), uint64(size)
			o.seq += uint64(n)
			k.stats.coalesced += int64(size)
			o.take(n)
			k.beginPayload(p, pe, h, b, nil)
			return true
		}
	}
	m := o.pending[0]
	o.take(1)
	k.sendOne(p, pe, m)
	return true
}

// take forgets the first n pending messages.
func (o *outbound) take(n int) {
	rest := copy(o.pending, o.pending[n:])
	clear(o.pending[rest:])
	o.pending = o.pending[:rest]
}

// gather takes messages from the handler: small ones up to a batch, or one
// large one. It reports whether the handler may have more.
func (k *core) gather(p *Port, dst Rank) bool {
	o := &p.out[dst]
	n := len(o.pending)
	if n > 0 && !k.small(o.pending[n-1]) {
		return true
	}
	room := k.set.batch
	for i := range o.pending {
		room -= int(o.pending[i].Size()) + recordHeader
	}
	if room <= 0 {
		return true
	}
	p.ready[dst].Store(false)
	o.pending = p.h.Next(dst, room, o.pending)
	return len(o.pending) > n || p.ready[dst].Load()
}

// small reports whether m may travel in a batch.
func (k *core) small(m Message) bool {
	return !m.Control && m.Size() <= int64(k.set.coalesce) &&
		(m.Data == nil || m.Data.Type() == buffer.Host)
}

// smallRun returns how many messages at the front form a batch, and its size.
func (k *core) smallRun(ms []Message) (n, size int) {
	for _, m := range ms {
		r := recordSize(len(m.Meta), int(min(m.dataLen(), int64(k.set.batch))))
		if !k.small(m) || size+r > k.set.batch {
			break
		}
		size += r
		n++
	}
	return n, size
}

// pack copies small messages into one payload and releases them. Without
// memory for it the result is nil, and the messages travel one by one.
func (k *core) pack(ms []Message, size int) *buffer.Buffer {
	res, ok := k.mem.TryReserve(int64(size), buffer.Host)
	if !ok {
		return nil
	}
	defer res.Release()
	res.SetHolder(buffer.HeldOutgoing)
	b, err := res.Alloc(int64(size), nil)
	if err != nil {
		return nil
	}
	dst := hostBytes(b)
	for _, m := range ms {
		n := putRecord(dst, m.Part, m.Meta, int(m.dataLen()), func(to []byte) { copyFrom(to, m.Data) })
		dst = dst[n:]
		if m.Data != nil {
			m.Data.Release()
		}
	}
	return b
}

// sendOne starts a message that travels alone.
func (k *core) sendOne(p *Port, pe *peer, m Message) {
	o := &p.out[pe.rank]
	kd := kindData
	if m.Control {
		kd = kindControl
	}
	h := k.header(p, kd, o.seq)
	o.seq++
	h.part, h.meta = m.Part, uint32(len(m.Meta))
	inline := m.Meta
	if HeaderSize+len(m.Meta) > k.maxHead {
		k.sendMeta(p, pe, h, m.Meta)
		inline = nil
	}
	if m.dataLen() > 0 {
		h.data = uint64(m.dataLen())
		k.beginPayload(p, pe, h, m.Data, inline)
		return
	}
	if m.Data != nil {
		m.Data.Release()
	}
	pe.eager = append(pe.eager, h.frame(inline))
}

// sendMeta queues metadata that is longer than a frame, in parts.
func (k *core) sendMeta(p *Port, pe *peer, h header, meta []byte) {
	step := k.maxHead - HeaderSize
	for off := 0; off < len(meta); off += step {
		part := h
		part.kind, part.data = kindMeta, uint64(off)
		pe.eager = append(pe.eager, part.frame(meta[off:min(off+step, len(meta))]))
	}
}

// beginPayload posts the first segment of a message and remembers the rest.
func (k *core) beginPayload(p *Port, pe *peer, h header, b *buffer.Buffer, inline []byte) {
	b.SetHolder(buffer.HeldOutgoing)
	msg := &posted{buf: b, size: b.Len(), left: int(segments(b.Len(), k.segmentSize()))}
	p.out[pe.rank].partly = &partly{h: h, msg: msg}
	p.posting++
	k.postSegmentWith(p, pe, inline)
}

func (k *core) postSegment(p *Port, pe *peer) { k.postSegmentWith(p, pe, nil) }

func (k *core) postSegmentWith(p *Port, pe *peer, inline []byte) {
	o := &p.out[pe.rank]
	w := o.partly
	size := k.segmentSize()
	n := min(size, w.msg.size-w.next)
	h := w.h
	h.seg = uint32(w.next / size)
	cookie := k.takeSlot(slot{port: p, peer: pe, msg: w.msg, bytes: n})
	if pe.owed > 0 {
		h.credit = uint32(pe.owed)
		pe.owed = 0
	}
	k.post(pe, Send{Cookie: cookie, Head: h.frame(inline), Body: Region{w.msg.buf, w.next, n}})
	pe.workSent++
	k.stats.sentTo[pe.rank] += n
	pe.inflight++
	k.wireBytes += n
	if w.next += n; w.next == w.msg.size {
		o.partly = nil
	}
}

// segmentSize is the agreed size of a segment. A transport that hands over
// moves whole payloads, so there is only one.
func (k *core) segmentSize() int64 {
	if k.info.HandsOver {
		return 1 << 62
	}
	return k.segment
}

func segments(n, size int64) int64 { return (n-1)/size + 1 }

func (k *core) header(p *Port, kd kind, seq uint64) header {
	return header{kind: kd, epoch: k.info.Epoch, op: p.op, gen: p.gen, seq: seq}
}

// sendEnded takes the end of a posted payload.
func (k *core) sendEnded(cookie uint64, err error) {
	s := k.slots[cookie]
	k.slots[cookie] = slot{}
	k.free = append(k.free, cookie)
	s.peer.inflight--
	k.wireBytes -= s.bytes
	for pe := range k.others() {
		pe.dirty = pe.dirty || len(pe.active) > 0
	}
	s.peer.dirty = true
	if err == nil && k.info.HandsOver {
		s.msg.buf = nil
	}
	k.segmentDone(s.port, s.msg, 1)
}

// segmentDone counts n segments of a message as ended and frees its payload
// after the last.
func (k *core) segmentDone(p *Port, msg *posted, n int) {
	if msg.left -= n; msg.left > 0 {
		return
	}
	p.posting--
	if p.err == nil {
		msg.release()
	} else if msg.buf != nil {
		p.held = append(p.held, msg.buf) // rule C4
	}
	k.maybeRemove(p)
}

// release frees the payload, once.
func (m *posted) release() {
	if m.buf != nil {
		m.buf.Release()
		m.buf = nil
	}
}

// hostBytes returns the bytes of a host buffer that this rank owns. Host
// memory does not move while it is owned.
func hostBytes(b *buffer.Buffer) []byte {
	var p []byte
	// Host memory without a stream is always ready, so this cannot fail or wait.
	_ = b.OnHost(context.Background(), func(q []byte) error { p = q; return nil })
	return p
}

func copyFrom(dst []byte, b *buffer.Buffer) {
	_ = b.OnHost(context.Background(), func(src []byte) error { copy(dst, src); return nil })
}
