package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A finish message holds, for the partitions of one owner in rising order, how
// many chunks this rank inserted: the number of entries, then for each the
// distance to the partition before (the first: to -1) and the count, all as
// varints (Go's encoding/binary, the same as Protocol Buffers') of the least
// length. Partitions without chunks are absent.

// partCount is one entry.
type partCount struct {
	part  PartID
	count uint64
}

var errFinish = errors.New("malformed finish message")

func appendFinish(b []byte, entries []partCount) []byte {
	b = binary.AppendUvarint(b, uint64(len(entries)))
	last := int64(-1)
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(int64(e.part)-last))
		b = binary.AppendUvarint(b, e.count)
		last = int64(e.part)
	}
	return b
}

// decodeFinish checks that there are at most limit entries, rising and below
// parts, none of them zero, and nothing behind them.
func decodeFinish(b []byte, parts, limit int) ([]partCount, error) {
	next := func() (uint64, error) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, fmt.Errorf("%w: cut short", errFinish)
		}
		if n > 1 && b[n-1] == 0 {
			return 0, fmt.Errorf("%w: number of %d bytes for %d", errFinish, n, v)
		}
		b = b[n:]
		return v, nil
	}
	n, err := next()
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("%w: %d entries for %d partitions", errFinish, n, limit)
	}
	entries := make([]partCount, 0, n)
	at := uint64(0) // one above the partition before
	for range n {
		step, err := next()
		if err != nil {
			return nil, err
		}
		count, err := next()
		if err != nil {
			return nil, err
		}
		if step == 0 || step > uint64(parts)-at || count == 0 || count > 1<<62 {
			return nil, fmt.Errorf("%w: step %d, count %d", errFinish, step, count)
		}
		at += step
		entries = append(entries, partCount{PartID(at - 1), count})
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the end", errFinish, len(b))
	}
	return entries, nil
}
