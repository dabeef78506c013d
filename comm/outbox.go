package comm

import (
	"container/heap"
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/internal/fifo"
)

// Order says in which order the messages to one rank leave.
type Order uint8

const (
	// OrderPartition sends the lowest partition first, and within a partition
	// in insertion order, so that partitions become complete one by one.
	OrderPartition Order = iota
	// OrderRank sends to each rank in insertion order.
	OrderRank
	// OrderNone also starts in insertion order, but a message whose payload is
	// not ready yet may be overtaken. Host payloads are always ready.
	OrderNone
)

var orderNames = [...]string{"partition", "rank", "none"}

func (o Order) String() string {
	if int(o) < len(orderNames) {
		return orderNames[o]
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// MarshalText returns the name that UnmarshalText takes.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes partition, rank or none.
func (o *Order) UnmarshalText(b []byte) error {
	for i, n := range orderNames {
		if n == string(b) {
			*o = Order(i)
			return nil
		}
	}
	return fmt.Errorf("comm: send order %q: want partition, rank or none", b)
}

// Outbox queues messages by destination, and by partition inside it. It is not
// safe for concurrent use: a collective guards it with its own lock.
type Outbox struct {
	order Order
	dests []destQueue
}

// NewOutbox returns an empty outbox for size ranks.
func NewOutbox(size int, order Order) *Outbox {
	return &Outbox{order: order, dests: make([]destQueue, size)}
}

// destQueue holds what goes to one rank: messages by partition, the partitions
// that have any in a heap, and control messages, which go last.
type destQueue struct {
	parts   map[uint32]*fifo.Queue[Message]
	heap    partHeap
	control []Message
	count   int
}

// Push queues m for dst; its payload is outgoing from now on.
func (o *Outbox) Push(dst Rank, m Message) {
	d := &o.dests[dst]
	d.count++
	if m.Data != nil {
		m.Data.SetHolder(buffer.HeldOutgoing)
	}
	if m.Control {
		d.control = append(d.control, m)
		return
	}
	key := uint32(0)
	if o.order == OrderPartition {
		key = m.Part
	}
	q := d.parts[key]
	if q == nil {
		if d.parts == nil {
			d.parts = map[uint32]*fifo.Queue[Message]{}
		}
		q = &fifo.Queue[Message]{}
		d.parts[key] = q
	}
	if q.Len() == 0 {
		heap.Push(&d.heap, key)
	}
	q.Push(m)
}

// Take appends the next messages for dst to ms, until together their metadata
// and payloads take room bytes; at least one if there is any.
func (o *Outbox) Take(dst Rank, room int, ms []Message) []Message {
	for left := int64(room); left > 0; {
		m, ok := o.next(dst)
		if !ok {
			break
		}
		ms = append(ms, m)
		left -= max(1, m.Size())
	}
	return ms
}

func (o *Outbox) next(dst Rank) (Message, bool) {
	d := &o.dests[dst]
	if d.count == 0 {
		return Message{}, false
	}
	d.count--
	if len(d.heap) == 0 {
		m := d.control[0]
		d.control = d.control[1:]
		return m, true
	}
	key := d.heap[0]
	q := d.parts[key]
	m, _ := q.Pop()
	if q.Len() == 0 {
		heap.Pop(&d.heap)
		delete(d.parts, key)
	}
	return m, true
}

// Len is the number of messages queued for dst.
func (o *Outbox) Len(dst Rank) int { return o.dests[dst].count }

// Drop releases everything.
func (o *Outbox) Drop() {
	for r := range o.dests {
		for {
			m, ok := o.next(Rank(r))
			if !ok {
				break
			}
			m.release()
		}
	}
}

// partHeap is a heap of partitions, lowest first.
type partHeap []uint32

func (h partHeap) Len() int           { return len(h) }
func (h partHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h partHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *partHeap) Push(x any)        { *h = append(*h, x.(uint32)) }
func (h *partHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
