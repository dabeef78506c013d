package buffer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/sluice-engine/sluice/cuda"
	"github.com/sluice-engine/sluice/internal/invariant"
)

// A Buffer is bytes off the Go heap with one owner. Passing it to Insert, Send
// or a Message gives it away; touching it afterwards panics in checked builds.
// Its methods are for one goroutine at a time; views of one buffer may be used
// by several.
type Buffer struct {
	root  *Buffer // the first handle, if b is a later one
	data  unsafe.Pointer
	len   int64
	state atomic.Uint32

	// The block. Valid in its first handle only, see block.
	others atomic.Int32 // live handles but one
	res    *Resource    // charged
	span   *span        // nil: no bytes
	charge int64
	index  uint8 // in span
	typ    MemType
	holder Holder
}

const (
	bufferLive uint32 = iota
	bufferReleased
	bufferTaken
)

// block returns the handle that describes the block of b.
func (b *Buffer) block() *Buffer {
	if b.root != nil {
		return b.root
	}
	return b
}

// alive reports whether b may be touched; if not, checked builds panic.
func (b *Buffer) alive(act string) bool {
	state := b.state.Load()
	if state == bufferLive {
		return true
	}
	how := "released"
	if state == bufferTaken {
		how = "handed over"
	}
	invariant.Check(false, "buffer: %s of a buffer that was %s", act, how)
	return false
}

// Len returns the length in bytes.
func (b *Buffer) Len() int64 {
	if invariant.Enabled {
		b.alive("length")
	}
	return b.len
}

// Cap returns the bytes charged for the block, at least Len unless b is a view.
func (b *Buffer) Cap() int64 { return b.block().charge }

// Type returns where the bytes live.
func (b *Buffer) Type() MemType { return b.block().typ }

// Stream returns the stream of the last write; nil stands for the host.
func (b *Buffer) Stream() *cuda.Stream { return nil }

// Ready reports whether the last recorded write has finished; on the host it
// always has.
func (b *Buffer) Ready() (bool, error) {
	if !b.alive("use") {
		return false, fmt.Errorf("buffer: ready: %w", ErrReleased)
	}
	return true, nil
}

// errDevice is returned for device work on memory that has no device address.
var errDevice = errors.New("no device address")

// OnDevice lends the address to fn, whose work must be ordered on s, and records
// the write. Host memory has no device address: an error.
func (b *Buffer) OnDevice(fn func(p cuda.Ptr, s *cuda.Stream) error) error {
	if !b.alive("use") {
		return fmt.Errorf("buffer: use on device: %w", ErrReleased)
	}
	return fmt.Errorf("buffer: use on device: %s memory: %w", b.Type(), errDevice)
}

// OnHost waits for the last write, which on the host needs no waiting, and lends
// the bytes to fn. Nothing lent may be kept. ErrNotHost for device memory.
func (b *Buffer) OnHost(ctx context.Context, fn func(p []byte) error) error {
	if !b.alive("use") {
		return fmt.Errorf("buffer: use on host: %w", ErrReleased)
	}
	return fn(bytesAt(b.data, b.len))
}

// SetHolder says who holds the block of b.
func (b *Buffer) SetHolder(h Holder) {
	if !b.alive("set holder") {
		return
	}
	block := b.block()
	block.res.reholdBlock(block, h)
}

// Slice returns a view of n bytes from off on. It shares the block with b and is
// released like a buffer of its own; the charge goes with the last of them.
func (b *Buffer) Slice(off, n int64) *Buffer {
	if invariant.Enabled {
		b.alive("slice")
	}
	part := bytesAt(b.data, b.len)[off : off+n]
	block := b.block()
	block.others.Add(1)
	return &Buffer{root: block, data: unsafe.Pointer(unsafe.SliceData(part)), len: n}
}

// Take is called by who receives b. In checked builds it returns another handle,
// and touching b panics from then on; in normal builds it returns b.
func (b *Buffer) Take() *Buffer {
	if !invariant.Enabled || b == nil {
		return b
	}
	b.alive("take")
	taken := &Buffer{root: b.block(), data: b.data, len: b.len}
	b.state.Store(bufferTaken)
	return taken
}

// Move copies b into v's type and releases b, or returns b if the type and the
// Resource are right already. Within one type it copies between Resources; to
// hand over without copying use Reservation.Adopt. On error b is unchanged and
// still the caller's.
func (b *Buffer) Move(ctx context.Context, v *Reservation) (*Buffer, error) {
	if !b.alive("move") {
		return nil, fmt.Errorf("buffer: move: %w", ErrReleased)
	}
	if b.Type() == v.typ && b.block().res == v.res {
		return b, nil
	}
	moved, err := v.alloc(b.len)
	if err != nil {
		return nil, fmt.Errorf("buffer: move %s: %w", formatBytes(b.len), err)
	}
	copy(bytesAt(moved.data, moved.len), bytesAt(b.data, b.len))
	v.res.copied.Add(b.len)
	b.Release()
	return moved, nil
}

// Release gives the bytes back. Releasing nil does nothing.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	if !b.state.CompareAndSwap(bufferLive, bufferReleased) {
		b.alive("release")
		return
	}
	b.data = nil
	// With no other handle there is nobody who could make one meanwhile.
	if block := b.block(); block.others.Load() == 0 || block.others.Add(-1) < 0 {
		block.freeBlock()
	}
}

// freeBlock returns the block before its charge, so that who is granted the
// bytes finds the pages.
func (b *Buffer) freeBlock() {
	r := b.res
	r.made.remove(b)
	if b.span != nil {
		if invariant.Enabled {
			poison(b.span.block(b.index), b.charge)
		}
		b.span.freeBlock(b.index)
		b.span = nil
	}
	r.unuse(b.typ, b.charge, b.holder)
}

const (
	poisonByte  = 0xDB
	poisonBytes = 64 << 10 // at most, from the start of a block
)

// poison overwrites a freed block, so that who still reads it notices.
func poison(p unsafe.Pointer, n int64) {
	b := bytesAt(p, min(n, poisonBytes))
	for i := range b {
		b[i] = poisonByte
	}
}
