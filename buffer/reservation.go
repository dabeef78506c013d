package buffer

import (
	"fmt"

	"github.com/sluice-engine/sluice/cuda"
)

// A Reservation is bytes of one memory type that are the holder's to allocate.
// It is for one goroutine at a time.
type Reservation struct {
	res    *Resource
	left   int64
	typ    MemType
	holder Holder
}

// Type returns the memory type that was granted.
func (v *Reservation) Type() MemType { return v.typ }

// Left returns the bytes that are not allocated yet.
func (v *Reservation) Left() int64 { return v.left }

// SetHolder says who holds what is left of v and what is allocated from it
// later. A new Reservation is HeldByCaller.
func (v *Reservation) SetHolder(h Holder) {
	if h == v.holder {
		return
	}
	v.res.rehold(v.typ, v.left, v.holder, h)
	v.holder = h
}

// Alloc returns a buffer of size bytes, taking BlockSize(size) of what is left.
// The bytes are not cleared. Work on s may use the buffer at once; host memory
// needs no stream.
func (v *Reservation) Alloc(size int64, s *cuda.Stream) (*Buffer, error) {
	if size < 0 {
		return nil, fmt.Errorf("buffer: allocate %d bytes: negative", size)
	}
	b, err := v.alloc(size)
	if err != nil {
		return nil, fmt.Errorf("buffer: allocate %s: %w", formatBytes(size), err)
	}
	return b, nil
}

func (v *Reservation) alloc(size int64) (*Buffer, error) {
	if v.typ != Host && size > 0 {
		return nil, errNoTier(v.typ)
	}
	charge := v.res.blockSize(size)
	if charge > v.left {
		return nil, v.tooLittle(charge)
	}
	b := &Buffer{len: size, charge: charge, res: v.res, typ: v.typ, holder: v.holder}
	if charge > 0 {
		var err error
		if b.span, b.index, b.data, err = v.res.block(charge); err != nil {
			return nil, err
		}
	}
	v.use(charge)
	v.res.made.add(b)
	return b, nil
}

func (v *Reservation) tooLittle(charge int64) error {
	return fmt.Errorf("takes %s, reservation has %s left", formatBytes(charge), formatBytes(v.left))
}

// use turns n of the bytes left into bytes of a buffer.
func (v *Reservation) use(n int64) {
	if n == 0 {
		v.res.empty.Add(1)
		return
	}
	v.left -= n
	v.res.mu.types[v.typ].reserved.Add(-n)
}

// Adopt takes b over from its Resource into the one of v without copying: v
// pays for the block of b, Cap bytes, and its old Resource is credited. It fails,
// changing nothing, if v has another type or too little left, or if views of b
// exist (ErrShared).
func (v *Reservation) Adopt(b *Buffer) error {
	if err := v.adopt(b); err != nil {
		return fmt.Errorf("buffer: adopt: %w", err)
	}
	return nil
}

func (v *Reservation) adopt(b *Buffer) error {
	if !b.alive("adopt") {
		return ErrReleased
	}
	block := b.block()
	switch {
	case block.others.Load() != 0:
		return ErrShared
	case block.typ != v.typ:
		return fmt.Errorf("%s buffer by %s reservation", block.typ, v.typ)
	case block.charge > v.left:
		return v.tooLittle(block.charge)
	}
	old, holder := block.res, block.holder
	v.use(block.charge)
	v.res.made.move(block, &old.made)
	block.res, block.holder = v.res, v.holder
	old.unuse(block.typ, block.charge, holder)
	return nil
}

// Release gives back what is left. It may be called again.
func (v *Reservation) Release() {
	if v == nil || v.left == 0 {
		return
	}
	left := v.left
	v.left = 0
	v.res.release(v.typ, left, left, v.holder)
}
