package buffer

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/sluice-engine/sluice/cuda"
	"github.com/sluice-engine/sluice/internal/invariant"
)

// makeBuffer returns a buffer with a reservation of its own, all used up.
func makeBuffer(t testing.TB, r *Resource, size int64) *Buffer {
	t.Helper()
	v, ok := r.TryReserve(size)
	if !ok {
		t.Fatalf("no room for %d bytes", size)
	}
	return alloc(t, v, size)
}

// contents copies the bytes of b.
func contents(t testing.TB, b *Buffer) []byte {
	t.Helper()
	var p []byte
	if err := b.OnHost(context.Background(), func(q []byte) error { p = bytes.Clone(q); return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

func set(t testing.TB, b *Buffer, s string) {
	t.Helper()
	if err := b.OnHost(context.Background(), func(p []byte) error { copy(p, s); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestBuffer(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	b := makeBuffer(t, r, 5)
	set(t, b, "hello")
	ready, err := b.Ready()
	if b.Len() != 5 || b.Cap() != 64 || b.Type() != Host || b.Stream() != nil || !ready || err != nil {
		t.Errorf("length %d, capacity %d, %v, stream %v, ready %v, %v", b.Len(), b.Cap(), b.Type(), b.Stream(), ready, err)
	}
	if err := b.OnDevice(func(cuda.Ptr, *cuda.Stream) error { return nil }); !errors.Is(err, errDevice) {
		t.Errorf("on device: %v", err)
	}
	cause := errors.New("cause")
	if err := b.OnHost(context.Background(), func(p []byte) error {
		if len(p) != 5 || cap(p) != 5 {
			t.Errorf("lent %d of %d bytes", len(p), cap(p))
		}
		return cause
	}); err != cause {
		t.Errorf("on host: %v", err)
	}
	if got := contents(t, b); string(got) != "hello" {
		t.Errorf("%q", got)
	}
	b.Release()
	(*Buffer)(nil).Release()
	closeResource(t, r)
}

func TestOnHostAllocatesNothing(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	b := makeBuffer(t, r, 64)
	ctx := context.Background()
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		_ = b.OnHost(ctx, func(p []byte) error { sum += len(p); return nil })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := unsafe.Sizeof(*b); n > 64 {
		t.Errorf("a Buffer has %d bytes", n)
	}
	b.Release()
	closeResource(t, r)
}

func TestAlignment(t *testing.T) {
	for _, alignment := range []int64{0, 1, 64, 256, 1024, 4096} {
		cfg := Config{Alignment: alignment}
		cfg.Limits[Host] = Bytes(64 << 20)
		r, err := NewResource(nil, nil, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if alignment == 0 {
			alignment = defaultAlignment
		}
		var live []*Buffer
		for size := int64(1); size < 40000; size += size/5 + 1 {
			for range 3 {
				b := makeBuffer(t, r, size)
				want := min(alignment, powerOfTwo(b.Cap()))
				if at := int64(uintptr(b.data)); at%want != 0 || b.Cap() < size {
					t.Errorf("alignment %d: %d bytes in a block of %d at %x", alignment, size, b.Cap(), at)
				}
				live = append(live, b)
			}
		}
		for _, b := range live {
			b.Release()
		}
		closeResource(t, r)
	}
}

func TestSlice(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	b := makeBuffer(t, r, 100)
	set(t, b, "0123456789")
	left, right := b.Slice(0, 4), b.Slice(4, 96)
	inner := right.Slice(2, 3)
	if got := contents(t, inner); string(got) != "678" || inner.Len() != 3 || inner.Cap() != 128 {
		t.Errorf("%q, length %d, capacity %d", got, inner.Len(), inner.Cap())
	}
	v, _ := r.TryReserve(128)
	if err := v.Adopt(b); !errors.Is(err, ErrShared) {
		t.Errorf("adopt of a shared block: %v", err)
	}
	right.SetHolder(HeldReceived)
	if held := r.Usage(Host).Held[HeldReceived]; held != 128 {
		t.Errorf("held %d", held)
	}
	b.Release()
	right.Release()
	left.Release()
	checkUsage(t, r, 128, 128, 1<<20-256)
	if got := contents(t, inner); string(got) != "678" {
		t.Errorf("after the others are gone: %q", got)
	}
	if err := v.Adopt(inner); err != nil {
		t.Errorf("adopt of the last view: %v", err)
	}
	checkUsage(t, r, 128, 0, 1<<20-128)
	inner.Release()
	closeResource(t, r)

	for _, c := range []struct{ off, n int64 }{{-1, 1}, {0, 6}, {6, 0}, {3, 3}, {2, -1}} {
		func() {
			b := makeBuffer(t, r2(t), 5)
			defer func() {
				if recover() == nil {
					t.Errorf("Slice(%d, %d) of 5 bytes is accepted", c.off, c.n)
				}
			}()
			b.Slice(c.off, c.n)
		}()
	}
}

func r2(t *testing.T) *Resource { return newResource(t, NewArena(), 64) }

func TestAdopt(t *testing.T) {
	a := NewArena()
	from, to := newResource(t, a, 1<<20), newResource(t, a, 1<<20)
	b := makeBuffer(t, from, 3000)
	set(t, b, "payload")
	b.SetHolder(HeldOutgoing)
	at := b.data

	small, _ := to.TryReserve(2048)
	if err := small.Adopt(b); err == nil || err.Error() != "buffer: adopt: takes 3.0 KiB, reservation has 2.0 KiB left" {
		t.Errorf("too small a reservation: %v", err)
	}
	other, _ := to.Overbook(4096, Pinned)
	if err := other.Adopt(b); err == nil || err.Error() != "buffer: adopt: host buffer by pinned reservation" {
		t.Errorf("another type: %v", err)
	}
	other.Release()
	small.Release()
	checkUsage(t, from, 3072, 0, 1<<20-3072)

	// Someone waits for what the sender gives up.
	full, _ := from.TryReserve(1<<20 - 4096)
	var granted *Reservation
	from.Request(4096, nil, func(v *Reservation, err error) { granted = v })
	v, _ := to.TryReserve(b.Cap())
	v.SetHolder(HeldReceived)
	if err := v.Adopt(b); err != nil {
		t.Fatal(err)
	}
	if granted == nil {
		t.Fatal("the sender's bytes were not passed on")
	}
	granted.Release()
	full.Release()
	checkUsage(t, to, 3072, 0, 1<<20-3072)
	if held := to.Usage(Host).Held[HeldReceived]; held != 3072 {
		t.Errorf("held %d", held)
	}
	closeResource(t, from)
	if b.data != at || string(contents(t, b)[:7]) != "payload" || to.Copied() != 0 {
		t.Errorf("the bytes moved: %p to %p, copied %d", at, b.data, to.Copied())
	}
	b.Release()
	closeResource(t, to)
}

// A block outlives the Resources of its Arena when another Arena's adopts it.
func TestAdoptAcrossArenas(t *testing.T) {
	from, to := newResource(t, NewArena(), 1<<20), newResource(t, NewArena(), 1<<20)
	b := makeBuffer(t, from, 64)
	set(t, b, "payload")
	v, _ := to.TryReserve(64)
	if err := v.Adopt(b); err != nil {
		t.Fatal(err)
	}
	closeResource(t, from)
	if got := contents(t, b); string(got[:7]) != "payload" {
		t.Errorf("%q", got)
	}
	if s := from.arena.Stats(); s.Used == 0 || s.Mapped == 0 {
		t.Errorf("%+v", s)
	}
	b.Release()
	if s := from.arena.Stats(); s.Used != 0 || s.Mapped != 0 {
		t.Errorf("%+v", s)
	}
	closeResource(t, to)
}

func TestMove(t *testing.T) {
	ctx := context.Background()
	a := NewArena()
	r, other := newResource(t, a, 1<<20), newResource(t, a, 1<<20)
	b := makeBuffer(t, r, 2000)
	set(t, b, "payload")
	same, _ := r.TryReserve(2048)
	if got, err := b.Move(ctx, same); got != b || err != nil || same.Left() != 2048 {
		t.Errorf("move within a Resource: %p to %p, %v, left %d", b, got, err, same.Left())
	}
	same.Release()
	small, _ := other.TryReserve(64)
	if _, err := b.Move(ctx, small); err == nil || err.Error() != "buffer: move 2.0 KiB: takes 2.0 KiB, reservation has 64 B left" {
		t.Errorf("move into too little: %v", err)
	}
	small.Release()
	v, _ := other.TryReserve(2048)
	moved, err := b.Move(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, moved); string(got[:7]) != "payload" || other.Copied() != 2000 || r.Copied() != 0 {
		t.Errorf("%q, copied %d", got[:7], other.Copied())
	}
	closeResource(t, r)
	moved.Release()
	closeResource(t, other)
}

func TestPackedData(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	p := &PackedData{Meta: []byte("abc"), Data: makeBuffer(t, r, 10)}
	if p.Size() != 13 {
		t.Errorf("size %d", p.Size())
	}
	q := p.Take()
	if (p == q) == invariant.Enabled {
		t.Errorf("same handle %v in a build with checks %v", p == q, invariant.Enabled)
	}
	if string(q.Meta) != "abc" || q.Data.Len() != 10 {
		t.Errorf("%+v", q)
	}
	q.Release()
	q.Release()
	(*PackedData)(nil).Release()
	meta := (&PackedData{Meta: []byte("abc")}).Take()
	if meta.Size() != 3 || meta.Data != nil {
		t.Errorf("%+v", meta)
	}
	meta.Release()
	closeResource(t, r)
}

// A block larger than all memory works as long as it is not written all over.
func TestHugeBlock(t *testing.T) {
	for _, limit := range []Limit{Unlimited, Bytes(5 << 30)} {
		a := NewArena()
		r, err := a.NewResource(nil, nil, Config{Limits: [NumMemTypes]Limit{Host: limit}})
		if err != nil {
			t.Fatal(err)
		}
		b := makeBuffer(t, r, 5<<30)
		if err := b.OnHost(context.Background(), func(p []byte) error {
			for at := int64(0); at < 5<<30; at += 1 << 30 {
				p[at], p[at+1<<30-1] = 1, 2
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if rss := resident(t, a); rss > 10*hugePage {
			t.Errorf("resident %d", rss)
		}
		b.Release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if s := a.Stats(); s.Mapped != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// In a steady state no page is touched for the first time.
func TestSteadyStateFaultsNothing(t *testing.T) {
	for _, limit := range []int64{1 << 20, 64 << 20} {
		a := NewArena()
		r := newResource(t, a, limit)
		round := func() {
			var live []*Buffer
			for size := int64(64); size <= limit/4; size *= 2 {
				live = append(live, makeBuffer(t, r, size))
			}
			for _, b := range live {
				b.Release()
			}
		}
		round()
		before := a.Stats()
		for range 100 {
			round()
		}
		after := a.Stats()
		if after.Carved != before.Carved || after.Trimmed != before.Trimmed || after.Footprint != before.Footprint {
			t.Errorf("limit %s: %+v, then %+v", formatBytes(limit), before, after)
		}
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		closeResource(t, r)
	}
}

// The ranks of a process share what an Arena keeps.
func TestArenaBudgetIsTheSumOfLimits(t *testing.T) {
	a := NewArena()
	first, second := newResource(t, a, 1<<20), newResource(t, a, 2<<20)
	var live []*Buffer
	for range 2 {
		live = append(live, makeBuffer(t, second, 1<<20))
	}
	live = append(live, makeBuffer(t, first, 1<<20))
	for _, b := range live {
		b.Release()
	}
	if s := a.Stats(); s.Footprint != 3<<20 || s.Cached != 3<<20 {
		t.Errorf("%+v", s)
	}
	closeResource(t, second)
	if s := a.Stats(); s.Footprint != 1<<20 {
		t.Errorf("after the larger was closed: %+v", s)
	}
	closeResource(t, first)
	if s := a.Stats(); s.Mapped != 0 {
		t.Errorf("after all were closed: %+v", s)
	}
}

func TestRelease(t *testing.T) {
	if invariant.Enabled {
		return // see misuse_test.go
	}
	r := newResource(t, NewArena(), 1<<20)
	b, kept := makeBuffer(t, r, 64), makeBuffer(t, r, 64)
	b.Release()
	b.Release()
	checkUsage(t, r, 64, 0, 1<<20-64)
	ctx := context.Background()
	v, _ := r.TryReserve(64)
	for act, err := range map[string]error{
		"on host":   b.OnHost(ctx, func([]byte) error { return nil }),
		"on device": b.OnDevice(func(cuda.Ptr, *cuda.Stream) error { return nil }),
		"adopt":     v.Adopt(b),
		"move":      func() error { _, err := b.Move(ctx, v); return err }(),
		"ready":     func() error { _, err := b.Ready(); return err }(),
	} {
		if !errors.Is(err, ErrReleased) {
			t.Errorf("%s of a released buffer: %v", act, err)
		}
	}
	b.SetHolder(HeldStaging)
	v.Release()
	kept.Release()
	closeResource(t, r)
}
