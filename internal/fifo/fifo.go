package fifo

import "iter"

// Queue is first in, first out. The zero Queue is empty. It is not safe for
// concurrent use.
type Queue[T any] struct {
	head, tail *block[T]
	at         int // next to pop in head
	n          int
}

type block[T any] struct {
	items []T
	next  *block[T]
}

// Blocks double from firstBlock to maxBlock items.
const (
	firstBlock = 4
	maxBlock   = 256
)

// Len is the number of items.
func (q *Queue[T]) Len() int { return q.n }

// Push appends v.
func (q *Queue[T]) Push(v T) {
	switch {
	case q.tail == nil:
		b := &block[T]{items: make([]T, 0, firstBlock)}
		q.head, q.tail, q.at = b, b, 0
	case len(q.tail.items) == cap(q.tail.items):
		b := &block[T]{items: make([]T, 0, min(maxBlock, 2*cap(q.tail.items)))}
		q.tail.next = b
		q.tail = b
	}
	q.tail.items = append(q.tail.items, v)
	q.n++
}

// Front points at the oldest item, or is nil. It is valid until the next Pop.
func (q *Queue[T]) Front() *T {
	if q.n == 0 {
		return nil
	}
	return &q.head.items[q.at]
}

// Back points at the newest item, or is nil. It is valid until the next Pop.
func (q *Queue[T]) Back() *T {
	if q.n == 0 {
		return nil
	}
	return &q.tail.items[len(q.tail.items)-1]
}

// Pop takes the oldest item.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	b := q.head
	var zero T
	v, b.items[q.at] = b.items[q.at], zero
	q.n--
	if q.at++; q.at == len(b.items) {
		q.head, q.at = b.next, 0
		if q.head == nil {
			q.tail = nil
		}
	}
	return v, true
}

// PushFront puts v before all other items.
func (q *Queue[T]) PushFront(v T) {
	if q.n > 0 && q.at > 0 {
		q.at--
		q.head.items[q.at] = v
		q.n++
		return
	}
	b := &block[T]{items: []T{v}, next: q.head}
	q.head, q.at = b, 0
	if q.tail == nil {
		q.tail = b
	}
	q.n++
}

// Drain pops every item.
func (q *Queue[T]) Drain() iter.Seq[T] {
	return func(yield func(T) bool) {
		for v, ok := q.Pop(); ok; v, ok = q.Pop() {
			if !yield(v) {
				return
			}
		}
	}
}
