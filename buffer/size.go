package buffer

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

const (
	pageSize     = 4096 // bytes; the unit in which memory is touched and given back
	minBlock     = 64   // bytes
	minGap       = 256  // bytes between block sizes above 512: keeps them aligned to that
	sharedBelow  = 8192 // bytes; smaller blocks may share pages, others have whole pages
	exactAbove   = 1 << 20
	maxAlignment = pageSize
	maxSize      = math.MaxInt64 &^ (pageSize - 1) // bytes; what still rounds up without overflow
)

// BlockSize returns the capacity in bytes of the block that holds n bytes,
// which is what an account is charged for it; 0 for 0. Blocks have 64, 128, 256
// or 512 bytes, then four sizes per doubling at least 256 bytes apart, whole
// pages above 8 KiB, and any number of pages above 1 MiB. Powers of two are
// exact. Who allocates several buffers from one Reservation reserves the sum of
// their BlockSizes.
func BlockSize(n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case n <= minBlock:
		return minBlock
	case n <= 512:
		return powerOfTwo(n)
	case n <= sharedBelow:
		return roundUp(n, max(minGap, quarterBelow(n)))
	case n <= exactAbove:
		return roundUp(n, max(pageSize, quarterBelow(n)))
	case n <= maxSize:
		return roundUp(n, pageSize)
	}
	return math.MaxInt64
}

// powerOfTwo rounds n up to one.
func powerOfTwo(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }

// quarterBelow returns a quarter of the highest power of two below n.
func quarterBelow(n int64) int64 { return 1 << (bits.Len64(uint64(n-1)) - 3) }

// roundUp returns the next multiple of step, a power of two.
func roundUp(n, step int64) int64 { return (n + step - 1) &^ (step - 1) }

// ParseBytes reads a size such as "4096", "1.5MiB" or "2GB" in bytes: digits
// with at most one point, then nothing, B, or K, M, G, T with B (powers of
// 1000) or iB (powers of 1024). Fractions of a byte are dropped.
func ParseBytes(s string) (int64, error) {
	number := strings.TrimRight(s, "BKMGTi")
	unit, ok := unitBytes(s[len(number):])
	if !ok {
		return 0, fmt.Errorf("buffer: parse size %q: the unit must be B, KB, MB, GB, TB, KiB, MiB, GiB or TiB", s)
	}
	value, err := parseDecimal(number)
	if err != nil {
		return 0, fmt.Errorf("buffer: parse size %q: %w", s, err)
	}
	value.Mul(value, new(big.Rat).SetInt64(unit))
	whole := new(big.Int).Quo(value.Num(), value.Denom())
	if !whole.IsInt64() {
		return 0, fmt.Errorf("buffer: parse size %q: more than 2^63-1 bytes", s)
	}
	return whole.Int64(), nil
}

func unitBytes(unit string) (int64, bool) {
	if unit == "" || unit == "B" {
		return 1, true
	}
	power := strings.IndexByte("KMGT", unit[0]) + 1
	base := int64(1000)
	if rest := unit[1:]; rest == "iB" {
		base = 1024
	} else if rest != "B" {
		return 0, false
	}
	bytes := int64(1)
	for range power {
		bytes *= base
	}
	return bytes, power > 0
}

// maxDigits bounds the work that a number from outside can cause.
const maxDigits = 40

// parseDecimal reads [0-9.]+ with a digit and at most one point.
func parseDecimal(s string) (*big.Rat, error) {
	if len(s) > maxDigits {
		return nil, errors.New("the number is too long")
	}
	digits := strings.Replace(s, ".", "", 1)
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, errors.New("not a decimal number")
	}
	value, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, errors.New("not a decimal number")
	}
	return value, nil
}

// formatBytes writes n for people: "64 B", "7.9 MiB", "512 KiB".
func formatBytes(n int64) string {
	const units = "KMGTPE"
	if n > -1024 && n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for math.Abs(value) >= 1023.95 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	digits := 1
	if math.Abs(value) >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + units[unit:unit+1] + "iB"
}
