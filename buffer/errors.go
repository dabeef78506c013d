package buffer

import (
	"errors"
	"fmt"
	"strings"
)

// Errors to match with errors.Is.
var (
	// ErrTooLarge: no memory type in the order asked for could ever hold it.
	ErrTooLarge = errors.New("larger than any limit")
	// ErrInUse: Close while buffers or reservations are alive.
	ErrInUse = errors.New("still in use")
	// ErrClosed: the Resource was closed.
	ErrClosed = errors.New("resource is closed")
	// ErrNotHost: the bytes are not in host memory.
	ErrNotHost = errors.New("not host memory")
	// ErrDetached: the call gave up before the kernel or the wire let go of the
	// buffer; the engine keeps it and frees it then.
	ErrDetached = errors.New("buffer is detached until its transfer ends")
	// ErrReleased: the buffer was released or handed over before.
	ErrReleased = errors.New("buffer is released")
	// ErrShared: the block of the buffer is also held by views (Buffer.Slice).
	ErrShared = errors.New("block is shared by views")
)

// Held is the bytes one kind of holder has.
type Held struct {
	Holder string
	Bytes  int64
}

// NoMemoryError says that memory of one type could not be had, who holds it,
// and which option to change.
type NoMemoryError struct {
	Type    MemType
	Want    int64  // bytes
	Limit   int64  // bytes; math.MaxInt64 when unlimited
	Used    int64  // bytes in use and reserved
	Holders []Held // those with bytes, the most first
	Hint    string // what to do about it
}

// Error returns one line.
func (e *NoMemoryError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "buffer: no %s memory: need %s, limit ", e.Type, formatBytes(e.Want))
	if e.Limit == unlimitedBytes {
		s.WriteString("none")
	} else {
		s.WriteString(formatBytes(e.Limit))
	}
	fmt.Fprintf(&s, ", in use %s", formatBytes(e.Used))
	for i, h := range e.Holders {
		separator := ", "
		if i == 0 {
			separator = " ("
		}
		fmt.Fprintf(&s, "%s%s %s", separator, h.Holder, formatBytes(h.Bytes))
	}
	if len(e.Holders) > 0 {
		s.WriteString(")")
	}
	if e.Hint != "" {
		s.WriteString("; " + e.Hint)
	}
	return s.String()
}

// CorruptError says that bytes are not what was written or sent.
type CorruptError struct {
	Where  string // what was being read, such as "frame header" or "spill extent"
	File   string // empty when the bytes came from a peer
	Offset int64  // bytes into File or into the message
	Peer   int    // rank the bytes came from; -1 when they came from a file
}

// Error returns one line.
func (e *CorruptError) Error() string {
	if e.File != "" {
		return fmt.Sprintf("buffer: corrupt %s in %s at offset %d", e.Where, e.File, e.Offset)
	}
	return fmt.Sprintf("buffer: corrupt %s from rank %d at offset %d", e.Where, e.Peer, e.Offset)
}
