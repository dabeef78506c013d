package buffer

import (
	"fmt"
	"time"
)

// Config is the numbers of a Resource.
type Config struct {
	Limits [NumMemTypes]Limit // zero value: the default of each type, see Limit
	// Alignment of blocks in bytes, a power of two up to 4096; 0: 256. A block
	// smaller than that is aligned to its size, which is a power of two then.
	// With more than 256, larger sizes are rounded up to a power of two or a
	// multiple of Alignment before BlockSize applies.
	Alignment int64
	// MemoryWait bounds how long a Reserve waits before it fails with a
	// *NoMemoryError that names the holders; 0: as long as its ctx.
	MemoryWait time.Duration
}

const defaultAlignment = 256 // bytes

// resolve checks c, reports every fault together, and returns the limits in
// bytes and the alignment.
func (c Config) resolve() (limits [NumMemTypes]int64, alignment int64, err error) {
	fault := func(next error) {
		if err != nil {
			next = fmt.Errorf("%w; %w", err, next)
		}
		err = next
	}
	for t := Device; t < NumMemTypes; t++ {
		limit, why := c.Limits[t].resolve(t)
		if why != nil {
			fault(fmt.Errorf("limit %s of %s: %w", c.Limits[t], t, why))
		}
		limits[t] = limit
	}
	alignment = c.Alignment
	if alignment == 0 {
		alignment = defaultAlignment
	}
	if alignment < 1 || alignment > maxAlignment || alignment&(alignment-1) != 0 {
		fault(fmt.Errorf("alignment %d is not a power of two up to %d", c.Alignment, maxAlignment))
	}
	if c.MemoryWait < 0 {
		fault(fmt.Errorf("memory wait %v is negative", c.MemoryWait))
	}
	return limits, alignment, err
}
