package buffer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// checkUsage compares the numbers of Host.
func checkUsage(t *testing.T, r *Resource, used, reserved, available int64) {
	t.Helper()
	u := r.Usage(Host)
	var held int64
	for _, n := range u.Held {
		held += n
	}
	if u.Used != used || u.Reserved != reserved || r.Available(Host) != available || held != used+reserved {
		t.Errorf("used %d, reserved %d, available %d, held %v; want %d, %d, %d", u.Used, u.Reserved, r.Available(Host), u.Held, used, reserved, available)
	}
}

func closeResource(t *testing.T, r *Resource) {
	t.Helper()
	checkUsage(t, r, 0, 0, r.Usage(Host).Limit)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestReservation(t *testing.T) {
	r := newResource(t, NewArena(), 4096)
	v, err := r.Reserve(context.Background(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	checkUsage(t, r, 0, 1024, 3072)
	if v.Left() != 1024 || v.Type() != Host {
		t.Errorf("left %d of %v", v.Left(), v.Type())
	}
	if _, ok := r.TryReserve(3073); ok {
		t.Error("granted more than is left")
	}
	b := alloc(t, v, 500)
	checkUsage(t, r, 512, 512, 3072)
	if _, err := v.Alloc(513, nil); err == nil || err.Error() != "buffer: allocate 513 B: takes 768 B, reservation has 512 B left" {
		t.Errorf("allocated more than reserved: %v", err)
	}
	v.SetHolder(HeldReceived)
	c := alloc(t, v, 100)
	if held := r.Usage(Host).Held; held != [NumHolders]int64{512, 0, 512, 0} {
		t.Errorf("held %v", held)
	}
	c.SetHolder(HeldOutgoing)
	if held := r.Usage(Host).Held; held != [NumHolders]int64{512, 128, 384, 0} {
		t.Errorf("held %v", held)
	}
	v.Release()
	v.Release()
	checkUsage(t, r, 640, 0, 4096-640)
	err = r.Close()
	if !errors.Is(err, ErrInUse) || !strings.HasPrefix(err.Error(), "buffer: close: still in use: 640 B in buffers, 0 B reserved, 0 empty buffers") {
		t.Errorf("close: %v", err)
	}
	b.Release()
	c.Release()
	if peak := r.Usage(Host).Peak; peak != 1024 {
		t.Errorf("peak %d", peak)
	}
	closeResource(t, r)
	if err := r.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := r.Reserve(context.Background(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("reserve after close: %v", err)
	}
	if err := r.SetLimit(Host, Unlimited); !errors.Is(err, ErrClosed) {
		t.Errorf("set limit after close: %v", err)
	}
}

func TestEmptyBuffers(t *testing.T) {
	r := newResource(t, NewArena(), 0)
	ctx := context.Background()
	v, err := r.Reserve(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, v, 0)
	if b.Len() != 0 || b.Cap() != 0 || b.Type() != Host {
		t.Errorf("length %d, capacity %d, %v", b.Len(), b.Cap(), b.Type())
	}
	called := false
	if err := b.OnHost(ctx, func(p []byte) error { called = len(p) == 0; return nil }); err != nil || !called {
		t.Errorf("on host: %v, called %v", err, called)
	}
	view := b.Slice(0, 0)
	b.Release()
	if err := r.Close(); !errors.Is(err, ErrInUse) {
		t.Errorf("close with an empty buffer: %v", err)
	}
	other := newResource(t, r.arena, 0)
	w, _ := other.TryReserve(0)
	if err := w.Adopt(view); err != nil {
		t.Error(err)
	}
	closeResource(t, r)
	view.Release()
	closeResource(t, other)
}

func TestReserveFaults(t *testing.T) {
	ctx := context.Background()
	r := newResource(t, NewArena(), 1<<20)
	for _, c := range []struct {
		size  int64
		order []MemType
		want  string
	}{
		{-1, nil, "buffer: reserve -1 bytes: negative"},
		{1, []MemType{Host, 7}, "buffer: reserve 1 B: unknown memtype(7)"},
		{1<<20 + 1, nil, "buffer: reserve 1.0 MiB: larger than any limit (host limit 1.0 MiB)"},
		{math.MaxInt64, nil, "buffer: reserve 8.0 EiB: larger than any limit (host limit 1.0 MiB)"},
		{64, []MemType{Device, Pinned}, "buffer: reserve 64 B: larger than any limit (pinned limit 0 B)"},
	} {
		_, err := r.Reserve(ctx, c.size, c.order...)
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if errors.Is(err, ErrTooLarge) != strings.Contains(c.want, "larger") {
			t.Errorf("%v: ErrTooLarge %v", err, errors.Is(err, ErrTooLarge))
		}
		if _, ok := r.TryReserve(c.size, c.order...); ok {
			t.Errorf("TryReserve(%d) succeeded", c.size)
		}
		var got error
		r.Request(c.size, c.order, func(_ *Reservation, err error) { got = err })()
		if got == nil || got.Error() != c.want {
			t.Errorf("request: got %v, want %s", got, c.want)
		}
	}
	v, err := r.Reserve(ctx, 1<<20, Disk, Device, Host, Host)
	if err != nil || v.Type() != Host {
		t.Fatalf("reservation %v, %v", v, err)
	}
	v.Release()
	closeResource(t, r)
}

func TestOverbook(t *testing.T) {
	r := newResource(t, NewArena(), 4096)
	v, over := r.Overbook(3000, Host)
	if over != 0 || v.Left() != 3072 {
		t.Errorf("over %d, left %d", over, v.Left())
	}
	w, over := r.Overbook(2048, Host)
	if over != 1024 {
		t.Errorf("over %d", over)
	}
	b := alloc(t, w, 2048)
	x, over := r.Overbook(512, Host)
	if over != 512 {
		t.Errorf("over %d", over)
	}
	checkUsage(t, r, 2048, 3072+512, 4096-5632)
	if n := r.Usage(Host).Overbooked; n != 1536 {
		t.Errorf("overbooked %d", n)
	}
	d, over := r.Overbook(64, Device)
	if _, err := d.Alloc(64, nil); over != 64 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("device: over %d, %v", over, err)
	}
	d.Release()
	v.Release()
	x.Release()
	b.Release()
	closeResource(t, r)
}

func TestSetLimit(t *testing.T) {
	a := NewArena()
	r := newResource(t, a, 8<<20)
	v, _ := r.TryReserve(8 << 20)
	var buffers []*Buffer
	for range 8 {
		b := alloc(t, v, 1<<20)
		fill(b, 1)
		buffers = append(buffers, b)
	}
	for _, b := range buffers[3:] {
		b.Release()
	}
	if s := a.Stats(); s.Footprint != 8<<20 || s.Used != 3<<20 || s.Cached != 5<<20 {
		t.Errorf("%+v", s)
	}
	if err := r.SetLimit(Host, Bytes(2<<20)); err != nil {
		t.Fatal(err)
	}
	checkUsage(t, r, 3<<20, 0, -1<<20)
	if s := a.Stats(); s.Footprint != 3<<20 || s.Trimmed != 5<<20 {
		t.Errorf("%+v", s)
	}
	if rss := resident(t, a); rss > 3<<20 {
		t.Errorf("resident %d", rss)
	}
	if _, ok := r.TryReserve(1); ok {
		t.Error("granted above the limit")
	}
	if err := r.SetLimit(Pinned, Bytes(1)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("set limit of pinned: %v", err)
	}
	if err := r.SetLimit(Host, Unlimited); err != nil {
		t.Fatal(err)
	}
	if r.Largest() != math.MaxInt64 {
		t.Errorf("largest %d", r.Largest())
	}
	for _, b := range buffers[:3] {
		b.Release()
	}
	closeResource(t, r)
}

func TestNoMemory(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	v, _ := r.TryReserve(512 << 10)
	w, _ := r.TryReserve(256 << 10)
	w.SetHolder(HeldReceived)
	x, _ := r.TryReserve(64)
	x.SetHolder(HeldStaging)
	got := r.NoMemory(Host, 1<<20, "").Error()
	const want = "buffer: no host memory: need 1.0 MiB, limit 1.0 MiB, in use 768 KiB (caller 512 KiB, received 256 KiB, staging 64 B); " +
		"raise Config.Limits of host memory"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e := r.NoMemory(Host, 5, "raise --limit-host"); e.Hint != "raise --limit-host" || e.Want != 5 || e.Limit != 1<<20 {
		t.Errorf("%+v", e)
	}
	for _, v := range []*Reservation{v, w, x} {
		v.Release()
	}
	closeResource(t, r)
}

// Every act that matters to a stuck check changes the version.
func TestVersion(t *testing.T) {
	a := NewArena()
	r, other := newResource(t, a, 4096), newResource(t, a, 4096)
	var v, granted *Reservation
	var b *Buffer
	var cancel func()
	for _, act := range []struct {
		name string
		do   func()
	}{
		{"reserve", func() { v, _ = r.TryReserve(4096) }},
		{"request", func() { cancel = r.Request(64, nil, func(*Reservation, error) {}) }},
		{"cancel", func() { cancel() }},
		{"set holder", func() { v.SetHolder(HeldStaging) }},
		{"grant", func() {
			b = alloc(t, v, 64)
			r.Request(64, nil, func(v *Reservation, err error) { granted = v })
			v.Release()
		}},
		{"release of a reservation", func() { granted.Release() }},
		{"hand-over", func() { w, _ := other.TryReserve(64); _ = w.Adopt(b) }},
		{"set limit", func() { _ = r.SetLimit(Host, Bytes(4096)) }},
		{"overbook", func() { v, _ = r.Overbook(64, Host) }},
	} {
		before := r.Version()
		act.do()
		if r.Version() == before {
			t.Errorf("%s did not change the version", act.name)
		}
	}
	v.Release()
	b.Release()
	closeResource(t, r)
	closeResource(t, other)
}
