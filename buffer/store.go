package buffer

import "context"

// Store keeps bytes that left memory. A Resource takes one already, but nothing
// is spilled to it yet.
type Store interface {
	// Put writes the bytes of b, which it only borrows.
	Put(ctx context.Context, b *Buffer) (Slot, error)
	// Get reads the bytes of s into dst, which it only borrows.
	Get(ctx context.Context, s Slot, dst *Buffer) error
	// Drop gives the place of s up.
	Drop(s Slot) error
}

// Slot is a place in a Store, in bytes.
type Slot struct{ Off, Len int64 }
