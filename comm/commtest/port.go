package commtest

import (
	"context"
	"errors"
	"sync"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// Pipe is the smallest collective: what is pushed on one rank is received, in
// any order, on another.
type Pipe struct {
	Port *comm.Port

	mem *buffer.Resource

	mu   sync.Mutex
	out  *comm.Outbox
	got  []Got
	err  error
	busy bool
}

// Got is one message that arrived.
type Got struct {
	Src     comm.Rank
	Seq     uint64
	Part    uint32
	Control bool
	Data    *buffer.PackedData
}

// OpenPipe joins operation op. params must be equal on all ranks.
func OpenPipe(c *comm.Communicator, mem *buffer.Resource, op comm.OpID, params ...comm.Param) (*Pipe, error) {
	p := &Pipe{mem: mem, out: comm.NewOutbox(c.Size(), comm.OrderRank)}
	_, err := c.Open(op, comm.Fingerprint{Kind: "pipe", Params: params}, func(port *comm.Port) comm.Handler {
		p.Port = port
		return (*pipeHandler)(p)
	})
	return p, err
}

// Push queues one message.
func (p *Pipe) Push(dst comm.Rank, part uint32, d *buffer.PackedData) {
	p.push(dst, comm.Message{Part: part, Meta: d.Meta, Data: d.Data})
}

// PushControl queues one message of metadata for the collective itself.
func (p *Pipe) PushControl(dst comm.Rank, meta []byte) {
	p.push(dst, comm.Message{Control: true, Meta: meta})
}

func (p *Pipe) push(dst comm.Rank, m comm.Message) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		(&buffer.PackedData{Data: m.Data}).Release()
		return
	}
	p.out.Push(dst, m)
	p.mu.Unlock()
	p.Port.Notify(dst)
}

// Recv waits for n messages and takes them.
func (p *Pipe) Recv(ctx context.Context, n int) ([]Got, error) {
	var got []Got
	var failed error
	err := p.Port.Wait(ctx, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		failed = p.err
		if len(p.got) >= n {
			got, p.got = p.got[:n:n], p.got[n:]
			return true
		}
		return failed != nil
	})
	if err == nil && got == nil {
		err = failed
	}
	return got, err
}

// Failure is the error that ended the operation.
func (p *Pipe) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// SetBusy makes the pipe say that its callers may still free memory.
func (p *Pipe) SetBusy(b bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = b
}

type pipeHandler Pipe

func (h *pipeHandler) Next(dst comm.Rank, room int, ms []comm.Message) []comm.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out.Take(dst, room, ms)
}

func (h *pipeHandler) Deliver(src comm.Rank, seq uint64, m comm.Message) {
	h.mu.Lock()
	h.got = append(h.got, Got{src, seq, m.Part, m.Control, &buffer.PackedData{Meta: m.Meta, Data: m.Data}})
	h.mu.Unlock()
	h.Port.Signal()
}

// Batch copies small payloads out; tests that send some leave room for them.
func (h *pipeHandler) Batch(src comm.Rank, b *comm.Batch) {
	h.mu.Lock()
	seq := b.First
	for r := range b.Records() {
		d := &buffer.PackedData{Meta: append([]byte(nil), r.Meta...)}
		if len(r.Data) > 0 {
			var err error
			if d.Data, err = h.copyOut(r.Data); err != nil {
				h.Port.Abort(err)
			}
		}
		h.got = append(h.got, Got{Src: src, Seq: seq, Part: r.Part, Data: d})
		seq++
	}
	h.mu.Unlock()
	b.Release()
	h.Port.Signal()
}

func (h *pipeHandler) copyOut(p []byte) (*buffer.Buffer, error) {
	res, ok := h.mem.TryReserve(int64(len(p)), buffer.Host)
	if !ok {
		return nil, errors.New("no room for a small message")
	}
	defer res.Release()
	b, err := res.Alloc(int64(len(p)), nil)
	if err != nil {
		return nil, err
	}
	return b, b.OnHost(context.Background(), func(dst []byte) error { copy(dst, p); return nil })
}

func (h *pipeHandler) Stalled(bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.busy
}

func (h *pipeHandler) Fail(err error) {
	h.mu.Lock()
	h.err = err
	h.out.Drop()
	for _, g := range h.got {
		g.Data.Release()
	}
	h.got = nil
	h.mu.Unlock()
	h.Port.Signal()
}
