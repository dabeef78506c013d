package comm

import (
	"encoding/binary"
	"fmt"
)

// hello is what ranks tell each other before anything else.
type hello struct {
	size     int   // of the job
	capacity int64 // largest payload this rank could ever hold
	segment  int64 // proposed segment size
	maxHead  int
	credit   int // bytes of eager frames it takes from us
}

const helloSize = 4 + 8 + 8 + 4 + 4

func (k *core) ownHello() *hello {
	return &hello{k.info.Size, k.mem.Largest(), k.set.segment, k.info.MaxHead, k.set.credit}
}

func (h *hello) encode() []byte {
	b := make([]byte, 0, helloSize)
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(h.size))
	b = le.AppendUint64(b, uint64(h.capacity))
	b = le.AppendUint64(b, uint64(h.segment))
	b = le.AppendUint32(b, uint32(h.maxHead))
	return le.AppendUint32(b, uint32(h.credit))
}

func decodeHello(b []byte) (*hello, error) {
	if len(b) != helloSize {
		return nil, fmt.Errorf("%w: hello of %d bytes", errFrame, len(b))
	}
	le := binary.LittleEndian
	h := &hello{
		size:     int(le.Uint32(b[0:])),
		capacity: int64(le.Uint64(b[4:])),
		segment:  int64(le.Uint64(b[12:])),
		maxHead:  int(le.Uint32(b[20:])),
		credit:   int(le.Uint32(b[24:])),
	}
	if h.capacity < 0 || h.segment < minSegment || h.segment > maxSegment || h.maxHead < minHead || h.credit < h.maxHead {
		return nil, fmt.Errorf("%w: hello out of bounds: %+v", errFrame, *h)
	}
	return h, nil
}

// control takes a frame that keeps the job together.
func (k *core) control(pe *peer, h header, body []byte) error {
	switch h.kind {
	case kindHello:
		return k.gotHello(pe, body)
	case kindOpen:
		return k.gotOpen(pe, portKey{h.op, h.gen}, body)
	case kindAbort, kindAbortJob:
		return k.gotAbort(pe, h, body)
	case kindAbortAck:
		if p := k.ports[portKey{h.op, h.gen}]; p != nil {
			if p.err == nil {
				return fmt.Errorf("%w: op %v was not aborted here", errFrame, h.op)
			}
			k.peerLeft(p, pe.rank)
		}
	case kindBarrier:
		if h.seg > maxRound || pe.rank != k.barrierFrom(h.seg) || 1<<h.seg >= k.info.Size {
			return fmt.Errorf("%w: round %d of a barrier", errFrame, h.seg)
		}
		k.barriers.arrived(k, h.seq, h.seg)
	case kindBye:
		if pe.bye {
			return fmt.Errorf("%w: second goodbye", errFrame)
		}
		pe.bye, pe.last = true, h.seq
		pe.got-- // not one of those it counts
	case kindProbe:
		k.probed(pe, h)
	case kindProbeReply:
		return k.probeReplied(pe, h, body)
	case kindStarved:
		k.starved(pe.rank, int64(h.data))
	}
	return nil
}

// checkLeft looks whether a peer has left, with everything it ever sent
// received, and ends what can never go on without it.
func (k *core) checkLeft(pe *peer) {
	if pe.left || !pe.farewell() {
		return
	}
	for key := range k.asm {
		if key.src == pe.rank {
			return // its last bytes are here, but not handed on yet
		}
	}
	for _, p := range k.ports {
		if len(p.in[pe.rank].early) > 0 {
			return
		}
	}
	pe.left = true
	k.gone(pe.rank)
	for _, p := range k.ports {
		k.joined(p, pe)
	}
	k.barriers.left(k)
	k.quiet.peerLeft()
	k.signal()
}

// joined ends an operation that a peer has left the job without joining.
func (k *core) joined(p *Port, pe *peer) {
	if pe.left && !p.in[pe.rank].opened {
		k.failPort(p, pe.rank, errLeft)
		k.peerLeft(p, pe.rank)
	}
}

func (k *core) gotHello(pe *peer, body []byte) error {
	h, err := decodeHello(body)
	if err != nil {
		return err
	}
	if pe.hello != nil {
		return fmt.Errorf("%w: second hello", errFrame)
	}
	if h.size != k.info.Size {
		d := fmt.Sprintf("size: %d here, %d there", k.info.Size, h.size)
		return &MismatchError{What: "job", Peer: pe.rank, Diff: []string{d}}
	}
	pe.hello = h
	pe.credit = h.credit
	k.hellos++
	k.segment = min(k.segment, h.segment)
	k.maxHead = min(k.maxHead, h.maxHead)
	if k.agreed() {
		k.begun()
	}
	return nil
}

// begun starts the exchange of data: all ranks have said how.
func (k *core) begun() {
	for pe := range k.others() {
		pe.dirty = true
		for _, p := range k.ports {
			if !p.in[pe.rank].opened {
				continue
			}
			if err := k.replay(p, pe); err != nil {
				k.broken(pe.rank, err)
			}
		}
		k.checkLeft(pe)
	}
	k.signal()
}
