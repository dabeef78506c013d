package flow

import "github.com/apache/arrow-go/v18/arrow/memory"

// boundedAllocator refuses sizes that only damage can explain, which would end
// the process. It has no way to say so: the empty slice it gives makes the
// format library run into a bounds check, which guard turns into an error.
type boundedAllocator struct {
	memory.Allocator
	most int
}

// allocatorFor serves a reader of a file of the given size. Compressed data may
// grow a lot, but one buffer of a batch does not outgrow this.
func allocatorFor(fileSize int64) memory.Allocator {
	return &boundedAllocator{memory.DefaultAllocator, int(1<<30 + 64*fileSize)}
}

// Allocate returns size bytes, or none.
func (a *boundedAllocator) Allocate(size int) []byte {
	if size > a.most {
		return nil
	}
	return a.Allocator.Allocate(size)
}

// Reallocate returns size bytes that begin as b, or none.
func (a *boundedAllocator) Reallocate(size int, b []byte) []byte {
	if size > a.most {
		return nil
	}
	return a.Allocator.Reallocate(size, b)
}
