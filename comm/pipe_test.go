package comm

import (
	"fmt"
	"strings"

	"github.com/sluice-engine/sluice/buffer"
)

// pipe is the collective of the transcripts: it sends what is pushed and keeps
// what arrives until it is told to release it.
type pipe struct {
	n    *node
	port *Port
	out  *Outbox
	got  []*buffer.Buffer
	seen map[[2]uint64]int // by source and number: how often delivered
	busy bool              // its callers may still free memory
	mute bool              // says nothing of what arrives
	err  error
}

func (n *node) open(op OpID, params []Param) (*pipe, error) {
	p := &pipe{n: n, out: NewOutbox(n.info.Size, OrderRank), seen: map[[2]uint64]int{}}
	_, err := n.c.Open(op, Fingerprint{Kind: "pipe", Params: params}, func(port *Port) Handler {
		p.port = port
		return p
	})
	if err == nil {
		n.pipes = append(n.pipes, p)
	}
	return p, err
}

// push queues a message whose bytes follow from part, or fails without memory
// or after a failure.
func (p *pipe) push(dst Rank, part uint32, meta int, data int64, control bool) error {
	if p.err != nil {
		return p.err
	}
	m := Message{Part: part, Control: control, Meta: make([]byte, meta)}
	pattern(m.Meta, part, 1)
	if data > 0 {
		res, ok := p.n.mem.TryReserve(data, buffer.Host)
		if !ok {
			return fmt.Errorf("no memory for %d bytes", data)
		}
		b, err := res.Alloc(data, nil)
		if err != nil {
			return err
		}
		pattern(hostBytes(b), part, 2)
		m.Data = b
	}
	p.out.Push(dst, m)
	p.port.Notify(dst)
	return nil
}

// pattern fills b with bytes that differ by part, salt and place.
func pattern(b []byte, part, salt uint32) {
	x := part*2654435761 + salt
	for i := range b {
		if i%4 == 0 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
		}
		b[i] = byte(x >> (i % 4 * 8))
	}
}

// damaged reports whether a message does not have the bytes of its part.
func damaged(part uint32, meta, data []byte) bool {
	m, d := make([]byte, len(meta)), make([]byte, len(data))
	pattern(m, part, 1)
	pattern(d, part, 2)
	return string(m) != string(meta) || string(d) != string(data)
}

// Next implements Handler.
func (p *pipe) Next(dst Rank, room int, ms []Message) []Message { return p.out.Take(dst, room, ms) }

// Deliver implements Handler.
func (p *pipe) Deliver(src Rank, seq uint64, m Message) {
	p.seen[[2]uint64{uint64(src), seq}]++
	var data []byte
	if m.Data != nil {
		data = hostBytes(m.Data)
		p.got = append(p.got, m.Data)
	}
	what := "message"
	if m.Control {
		what = "control"
	}
	p.say("%s %d of %d: %s", what, seq, src, contents(m.Part, m.Meta, data))
}

// Batch implements Handler.
func (p *pipe) Batch(src Rank, b *Batch) {
	var s strings.Builder
	seq := b.First
	for r := range b.Records() {
		p.seen[[2]uint64{uint64(src), seq}]++
		fmt.Fprintf(&s, ", %s", contents(r.Part, r.Meta, r.Data))
		seq++
	}
	p.say("batch from %d of %d%s", b.First, src, s.String())
	b.Release()
}

func contents(part uint32, meta, data []byte) string {
	s := fmt.Sprintf("part %d (%d+%d bytes)", part, len(meta), len(data))
	if damaged(part, meta, data) {
		s += " DAMAGED"
	}
	return s
}

// Stalled implements Handler.
func (p *pipe) Stalled(bool) bool { return !p.busy }

// Fail implements Handler.
func (p *pipe) Fail(err error) {
	p.say("failed: %v", err)
	p.err = err
	p.out.Drop()
	p.release()
}

func (p *pipe) release() {
	for _, b := range p.got {
		b.Release()
	}
	p.got = nil
}

func (p *pipe) say(format string, args ...any) {
	if !p.mute {
		p.n.say("op %v.%d %s", p.port.op, p.port.gen, fmt.Sprintf(format, args...))
	}
}
