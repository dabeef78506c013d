package comm

import "github.com/sluice-engine/sluice/buffer"

// mailHandler is the Handler of the Mailbox's port, kept off the public type.
type mailHandler Mailbox

func (h *mailHandler) mailbox() *Mailbox { return (*Mailbox)(h) }

func (h *mailHandler) Next(dst Rank, room int, ms []Message) []Message {
	m := h.mailbox()
	m.mu.Lock()
	had := len(ms)
	ms = m.out.Take(dst, room, ms)
	was := m.queued[dst]
	for i := range ms[had:] {
		m.queued[dst] -= ms[had+i].Size()
	}
	freed := was >= mailQueue && m.queued[dst] < mailQueue
	m.mu.Unlock()
	if freed {
		m.c.signal()
	}
	return ms
}

func (h *mailHandler) Deliver(src Rank, seq uint64, msg Message) {
	h.mailbox().file(src, seq, mail{msg.Part, &buffer.PackedData{Meta: msg.Meta, Data: msg.Data}})
}

// Batch takes the batch apart once there is memory for its messages.
func (h *mailHandler) Batch(src Rank, b *Batch) {
	m := h.mailbox()
	need := int64(0)
	for r := range b.Records() {
		need += buffer.BlockSize(int64(len(r.Data)))
	}
	w := &mailBatch{src: src, b: b}
	// The answer is taken under the baton, which is held here.
	w.cancel = m.port.Request(m.c.mem, need, func(res *buffer.Reservation, err error) {
		defer res.Release()
		if err = m.unpack(w, res, err); err != nil {
			m.c.core.abortAll(m.c.info.Rank, err)
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		w.drop()
		return
	}
	m.batches[w] = true
}

// drop gives up a batch that waits.
func (w *mailBatch) drop() {
	w.cancel()
	w.b.Release()
}

// unpack files the messages of w in memory from res.
func (m *Mailbox) unpack(w *mailBatch, res *buffer.Reservation, err error) error {
	m.mu.Lock()
	waits := m.batches[w] && err == nil
	if waits {
		m.batches[w] = false
	}
	m.mu.Unlock()
	if !waits {
		return err // dropped meanwhile, or to be dropped by who fails the mailbox
	}
	defer m.unpacked(w)
	res.SetHolder(buffer.HeldReceived)
	seq := w.b.First
	for r := range w.b.Records() {
		p := &buffer.PackedData{Meta: append([]byte(nil), r.Meta...)}
		if len(r.Data) > 0 {
			if p.Data, err = res.Alloc(int64(len(r.Data)), nil); err != nil {
				return err
			}
			copy(hostBytes(p.Data), r.Data)
		}
		m.file(w.src, seq, mail{r.Part, p})
		seq++
	}
	return nil
}

func (m *Mailbox) unpacked(w *mailBatch) {
	w.b.Release()
	m.mu.Lock()
	delete(m.batches, w)
	m.mu.Unlock()
	m.c.signal()
}

// Stalled: a message that waits for Recv may free memory.
func (h *mailHandler) Stalled(bool) bool {
	m := h.mailbox()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unread == 0
}

func (h *mailHandler) Fail(err error) { h.mailbox().fail(err) }
