package comm

import (
	"fmt"
	"math"
)

// earlyOp is what peers have told us of an operation that this rank has not
// opened yet.
type earlyOp struct {
	opens  map[Rank]string
	aborts map[Rank]earlyAbort
}

type earlyAbort struct {
	rank  Rank
	cause error
}

// maxEarly bounds the operations that peers may be ahead of us.
const maxEarly = 1 << 16

func (k *core) earlyFor(key portKey) (*earlyOp, error) {
	e := k.early[key]
	if e == nil {
		if len(k.early) >= maxEarly {
			return nil, fmt.Errorf("%w: more than %d operations ahead of this rank", errFrame, maxEarly)
		}
		e = &earlyOp{opens: map[Rank]string{}, aborts: map[Rank]earlyAbort{}}
		k.early[key] = e
	}
	return e, nil
}

// openPort makes p live and tells the others.
func (k *core) openPort(p *Port) {
	key := portKey{p.op, p.gen}
	k.ports[key] = p
	k.gens.opened(p.op, p.gen)
	if k.err != nil {
		pe := k.err.(*PeerError)
		k.failPort(p, pe.Rank, pe.Cause)
		return
	}
	e := k.early[key]
	delete(k.early, key)
	if e != nil {
		for _, a := range e.aborts {
			k.failPort(p, a.rank, a.cause)
			for r := range e.aborts {
				k.peerLeft(p, r)
			}
			return
		}
	}
	k.broadcast(header{kind: kindOpen, op: p.op, gen: p.gen}, p.fp)
	defer func() {
		for pe := range k.others() {
			k.joined(p, pe)
		}
	}()
	if e != nil {
		for r, fp := range e.opens {
			if err := k.agree(p, k.peers[r], []byte(fp)); err != nil {
				k.broken(r, err)
			}
		}
	}
}

func (k *core) gotOpen(pe *peer, key portKey, fp []byte) error {
	if len(fp) > maxFingerprint {
		return fmt.Errorf("%w: fingerprint of %d bytes", errFrame, len(fp))
	}
	if p := k.ports[key]; p != nil {
		return k.agree(p, pe, fp)
	}
	if k.gens.past(key) {
		k.stats.dropped++
		return nil
	}
	e, err := k.earlyFor(key)
	if err != nil {
		return err
	}
	if _, twice := e.opens[pe.rank]; twice {
		return openedTwice(key.op)
	}
	e.opens[pe.rank] = string(fp)
	return nil
}

func openedTwice(op OpID) error { return fmt.Errorf("%w: op %v opened twice", errFrame, op) }

// agree compares a peer's fingerprint with ours; from then on data may flow.
func (k *core) agree(p *Port, pe *peer, fp []byte) error {
	in := &p.in[pe.rank]
	if in.opened {
		return openedTwice(p.op)
	}
	in.opened = true
	if p.err != nil {
		return nil
	}
	if string(fp) != string(p.fp) {
		theirs, err := decodeFingerprint(fp)
		if err != nil {
			return err
		}
		ours, _ := decodeFingerprint(p.fp) // our own encoding
		k.failPort(p, pe.rank, &MismatchError{What: ours.Kind, Peer: pe.rank, Diff: ours.diff(theirs)})
		return nil
	}
	k.activate(p, pe)
	if !k.agreed() {
		return nil // gotHello replays
	}
	return k.replay(p, pe)
}

func (k *core) gotAbort(pe *peer, h header, body []byte) error {
	cause, err := decodeCause(body)
	if err != nil {
		return err
	}
	if int(h.part) >= k.info.Size {
		return fmt.Errorf("%w: abort blames rank %d of %d", errFrame, h.part, k.info.Size)
	}
	if h.kind == kindAbortJob {
		pe.aborted = true
		k.abortAll(Rank(h.part), cause)
		k.signal()
		return nil
	}
	key := portKey{h.op, h.gen}
	ack := header{kind: kindAbortAck, op: h.op, gen: h.gen}
	p := k.ports[key]
	switch {
	case p != nil && p.err == nil && !p.complete:
		k.failPort(p, Rank(h.part), cause)
		k.peerLeft(p, pe.rank)
	case p != nil:
		if p.err == nil {
			k.urgent(pe, ack, nil)
		}
		k.peerLeft(p, pe.rank)
	case k.gens.past(key):
		k.urgent(pe, ack, nil)
	default:
		e, err := k.earlyFor(key)
		if err != nil {
			return err
		}
		e.aborts[pe.rank] = earlyAbort{Rank(h.part), cause}
		k.urgent(pe, ack, nil)
	}
	return nil
}

// failPort ends an operation on this rank and tells all others. Payloads that
// were posted stay put until every peer has said that it is done with them.
func (k *core) failPort(p *Port, rank Rank, cause error) {
	if p.err != nil {
		return
	}
	if p.op == mailOp && k.err == nil {
		k.abortAll(rank, cause)
		return
	}
	p.err = &PeerError{Rank: rank, Host: k.hostOf(rank), Op: p.op, Cause: cause}
	k.killAll(p)
	for r := range p.in {
		for _, f := range k.takeEarly(p, k.peers[r]) {
			k.refuse(&Event{Token: f.token, Size: f.size})
		}
		k.drop(p, Rank(r))
	}
	if k.err == nil {
		k.broadcast(header{kind: kindAbort, op: p.op, gen: p.gen, part: uint32(rank)}, encodeCause(cause))
	}
	p.h.Fail(p.err)
	k.signal()
	k.maybeRemove(p)
}

// completePort notes that p needs nothing more. What is only in part here can
// only be what no correct rank sends.
func (k *core) completePort(p *Port) {
	if p.err == nil {
		p.complete = true
		k.killAll(p)
		k.maybeRemove(p)
	}
}

func (k *core) killAll(p *Port) {
	for key, a := range k.asm {
		if key.port == p {
			k.kill(a)
		}
	}
}

// drop forgets what was to be sent to dst and has not been posted. What a
// failed handler still has, it drops itself.
func (k *core) drop(p *Port, dst Rank) {
	o := &p.out[dst]
	if p.err == nil {
		o.pending = p.h.Next(dst, math.MaxInt, o.pending)
		p.ready[dst].Store(false)
	}
	for _, m := range o.pending {
		m.release()
	}
	o.pending = nil
	if w := o.partly; w != nil {
		o.partly = nil
		k.segmentDone(p, w.msg, int(segments(w.msg.size-w.next, k.segmentSize())))
	}
}

// peerLeft notes that a peer keeps nothing of the operation any more.
func (k *core) peerLeft(p *Port, r Rank) {
	p.out[r].gone = true
	k.drop(p, r)
	k.maybeRemove(p)
}

// maybeRemove retires a port once neither this rank nor a peer can touch what
// it holds.
func (k *core) maybeRemove(p *Port) {
	if p.gone || p.posting > 0 || !k.settled(p) {
		return
	}
	p.gone = true
	for _, b := range p.held {
		b.Release()
	}
	p.held = nil
	delete(k.ports, portKey{p.op, p.gen})
	k.removed(p)
	k.signal()
}

func (k *core) settled(p *Port) bool {
	if p.err == nil && !(p.complete && p.closed) {
		return false
	}
	for pe := range k.others() {
		o, in := &p.out[pe.rank], &p.in[pe.rank]
		switch {
		case o.gone || pe.down:
		case p.err != nil:
			if k.err == nil {
				return false
			}
		case !in.opened || len(o.pending) > 0 || o.partly != nil || p.ready[pe.rank].Load():
			return false
		}
	}
	if p.err != nil {
		for _, f := range k.pulling {
			if f.asm.key.port == p {
				return false
			}
		}
	}
	return true
}

func (k *core) hostOf(r Rank) string {
	if r == k.info.Rank {
		return k.info.Host
	}
	return ""
}

// genTable remembers which generations of an operation this rank has opened.
// Fixed ids are few; ids of scopes are used once, so only the latest are kept.
type genTable struct {
	next   map[OpID]uint32
	scoped []OpID
}

const keptScoped = 4096

func (g *genTable) opened(op OpID, gen uint32) {
	if _, ok := g.next[op]; !ok && op&scopedBit != 0 {
		if len(g.scoped) == keptScoped {
			delete(g.next, g.scoped[0])
			g.scoped = g.scoped[1:]
		}
		g.scoped = append(g.scoped, op)
	}
	g.next[op] = gen + 1
}

func (g *genTable) past(k portKey) bool { return k.gen < g.next[k.op] }
