package buffer

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	hugePage     = 2 << 20   // bytes
	mappingBytes = 256 << 20 // bytes of address space taken at a time
)

// A mapping is address space for spans, aligned to hugePage, with inaccessible
// pages on both sides. No memory is behind it until it is written to.
type mapping struct {
	whole []byte // with the guards
	bytes []byte
}

// newMapping takes at least n bytes of address space.
func newMapping(n int64) (*mapping, error) {
	n = max(roundUp(n, hugePage), mappingBytes)
	whole, err := syscall.Mmap(-1, 0, int(n+2*hugePage), syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", formatBytes(n), err)
	}
	at := int64(uintptr(unsafe.Pointer(&whole[0])))
	guard := roundUp(at+1, hugePage) - at
	m := &mapping{whole: whole, bytes: whole[guard : guard+n : guard+n]}
	if err := syscall.Mprotect(m.bytes, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		m.unmap()
		return nil, fmt.Errorf("map %s: %w", formatBytes(n), err)
	}
	// Huge pages come by region, in Arena.growLocked, so that what is touched is
	// what is counted. Fails harmlessly on kernels without them.
	_ = syscall.Madvise(m.bytes, syscall.MADV_NOHUGEPAGE)
	m.name()
	return m, nil
}

// name makes m show as [anon:sluice-arena] in /proc/self/smaps of kernels that
// keep such names.
func (m *mapping) name() {
	const setVMA, setAnonName = 0x53564d61, 0 // PR_SET_VMA, PR_SET_VMA_ANON_NAME
	name := []byte("sluice-arena\x00")
	_, _, _ = syscall.Syscall6(syscall.SYS_PRCTL, setVMA, setAnonName, uintptr(unsafe.Pointer(&m.bytes[0])),
		uintptr(len(m.bytes)), uintptr(unsafe.Pointer(&name[0])), 0)
}

// unmap gives the address space and all memory behind it back.
func (m *mapping) unmap() { _ = syscall.Munmap(m.whole) }

// bytesAt is the n bytes from address p of a mapping on.
func bytesAt(p unsafe.Pointer, n int64) []byte { return unsafe.Slice((*byte)(p), n) }
