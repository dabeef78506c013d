package fifo

import "testing"

func TestQueue(t *testing.T) {
	var q Queue[int]
	next, want := 0, 0
	// Lengths that cross block borders, with the queue running empty between.
	for _, n := range []int{1, 3, 4, 5, 11, 12, 13, 700, 2} {
		for range n {
			q.Push(next)
			next++
			if *q.Back() != next-1 {
				t.Fatalf("back is %d after pushing %d", *q.Back(), next-1)
			}
		}
		for i := range n {
			if q.Len() != n-i || *q.Front() != want {
				t.Fatalf("len %d front %d, want %d and %d", q.Len(), *q.Front(), n-i, want)
			}
			if v, ok := q.Pop(); !ok || v != want {
				t.Fatalf("pop gave %d, %v; want %d", v, ok, want)
			}
			want++
		}
		if _, ok := q.Pop(); ok || q.Len() != 0 || q.Front() != nil || q.Back() != nil {
			t.Fatal("empty queue has something")
		}
	}
}

func TestDrainStops(t *testing.T) {
	var q Queue[int]
	for i := range 10 {
		q.Push(i)
	}
	for v := range q.Drain() {
		if v == 3 {
			break
		}
	}
	if q.Len() != 6 || *q.Front() != 4 {
		t.Fatalf("after a stopped drain: len %d, front %d", q.Len(), *q.Front())
	}
}

func TestPushFront(t *testing.T) {
	var q Queue[int]
	q.PushFront(2)
	q.PushFront(1)
	for i := 3; i < 20; i++ {
		q.Push(i)
	}
	for range 3 { // take one and put it back, at block borders and inside
		v, _ := q.Pop()
		q.PushFront(v)
	}
	for want := 1; want < 20; want++ {
		v, _ := q.Pop()
		q.PushFront(v)
		if got, ok := q.Pop(); !ok || got != want {
			t.Fatalf("got %d, %v; want %d", got, ok, want)
		}
	}
	if q.Len() != 0 {
		t.Fatalf("%d items left", q.Len())
	}
}
