//go:build invariants || race

package buffer

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestMisusePanics(t *testing.T) {
	ctx := context.Background()
	r := newResource(t, NewArena(), 1<<20)
	released, taken := makeBuffer(t, r, 64), makeBuffer(t, r, 64)
	released.Release()
	owner := taken.Take()
	packed := &PackedData{Meta: []byte("m"), Data: makeBuffer(t, r, 64)}
	received := packed.Take()
	v, _ := r.TryReserve(64)
	broken := newResource(t, NewArena(), 1<<20) // the panic leaves it locked
	for _, c := range []struct {
		act  string
		do   func()
		want string
	}{
		{"release twice", func() { released.Release() }, "buffer: release of a buffer that was released"},
		{"release after Take", func() { taken.Release() }, "buffer: release of a buffer that was handed over"},
		{"length after Take", func() { taken.Len() }, "buffer: length of a buffer that was handed over"},
		{"read after Release", func() { _ = released.OnHost(ctx, func([]byte) error { return nil }) }, "buffer: use of a buffer that was released"},
		{"slice after Take", func() { taken.Slice(0, 1) }, "buffer: slice of a buffer that was handed over"},
		{"take twice", func() { taken.Take() }, "buffer: take of a buffer that was handed over"},
		{"adopt after Release", func() { _ = v.Adopt(released) }, "buffer: adopt of a buffer that was released"},
		{"move after Take", func() { _, _ = taken.Move(ctx, v) }, "buffer: move of a buffer that was handed over"},
		{"holder after Take", func() { taken.SetHolder(HeldStaging) }, "buffer: set holder of a buffer that was handed over"},
		{"size of packed data after Take", func() { packed.Size() }, "buffer: length of a buffer that was handed over"},
		{"release of packed data after Take", func() { packed.Release() }, "buffer: release of a buffer that was handed over"},
		{"negative account", func() { broken.release(Host, 2<<20, 0, HeldByCaller) }, "buffer: host account below zero"},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "invariant: "+c.want) {
					t.Errorf("%s: panic %q, want %q", c.act, got, c.want)
				}
			}()
			c.do()
		}()
	}
	owner.Release()
	received.Release()
}

func TestFreedBytesArePoisoned(t *testing.T) {
	r := newResource(t, NewArena(), 1<<20)
	b := makeBuffer(t, r, 64)
	var kept []byte
	_ = b.OnHost(context.Background(), func(p []byte) error { kept = p; return nil })
	copy(kept, "secret")
	b.Release()
	for _, c := range kept {
		if c != poisonByte {
			t.Fatalf("%q", kept)
		}
	}
	closeResource(t, r)
}

func TestCloseTellsWhereBuffersWereMade(t *testing.T) {
	a := NewArena()
	r, other := newResource(t, a, 1<<20), newResource(t, a, 1<<20)
	b := makeBuffer(t, r, 100)
	check := func(r *Resource) {
		t.Helper()
		err := r.Close()
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "100 B (caller) made at:") || !strings.Contains(err.Error(), "misuse_test.go") {
			t.Errorf("%v", err)
		}
	}
	check(r)
	v, _ := other.TryReserve(b.Cap())
	if err := v.Adopt(b); err != nil {
		t.Fatal(err)
	}
	check(other)
	closeResource(t, r)
	b.Release()
	closeResource(t, other)
}
