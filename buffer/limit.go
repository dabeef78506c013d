package buffer

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Limit bounds one memory type of a Resource. The zero value means the default
// of the type: Device 80 %, Pinned off, Host unlimited, Disk off. As text it is
// a size for ParseBytes, a percentage such as "80%", or one of the words
// default, unlimited, off. Limits can be compared with ==.
type Limit struct {
	kind    limitKind
	bytes   int64
	percent float64
}

type limitKind uint8

const (
	limitDefault limitKind = iota
	limitBytes
	limitPercent
	limitUnlimited
	limitOff
)

// Limits without a number.
var (
	Unlimited = Limit{kind: limitUnlimited}
	Off       = Limit{kind: limitOff} // the type is not used at all
)

// Bytes is a limit of n bytes, n at least 0. Bytes(0) is a real zero, not the
// default.
func Bytes(n int64) Limit { return Limit{kind: limitBytes, bytes: n} }

// Percent is a limit of p per cent, 0 to 100, of all memory of the type that
// the machine has.
func Percent(p float64) Limit { return Limit{kind: limitPercent, percent: p} }

// String returns the text that UnmarshalText reads back as an equal Limit.
func (l Limit) String() string {
	switch l.kind {
	case limitBytes:
		return exactBytes(l.bytes)
	case limitPercent:
		return strconv.FormatFloat(l.percent, 'f', -1, 64) + "%"
	case limitUnlimited:
		return "unlimited"
	case limitOff:
		return "off"
	}
	return "default"
}

// exactBytes writes n with the largest binary unit that needs no fraction.
func exactBytes(n int64) string {
	units := [...]string{"", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for n != 0 && n%1024 == 0 && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + units[unit]
}

// MarshalText implements encoding.TextMarshaler.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) error {
	s := string(text)
	switch s {
	case "default":
		*l = Limit{}
		return nil
	case "unlimited":
		*l = Unlimited
		return nil
	case "off":
		*l = Off
		return nil
	}
	if number, ok := strings.CutSuffix(s, "%"); ok {
		value, err := parseDecimal(number)
		if err != nil {
			return fmt.Errorf("buffer: parse limit %q: %w", s, err)
		}
		percent, _ := value.Float64()
		parsed := Percent(percent)
		if err := parsed.validate(); err != nil {
			return fmt.Errorf("buffer: parse limit %q: %w", s, err)
		}
		*l = parsed
		return nil
	}
	n, err := ParseBytes(s)
	if err != nil {
		return err
	}
	*l = Bytes(n)
	return nil
}

// minPercent keeps the text of a percentage short enough to be read back.
const minPercent = 1e-9

func (l Limit) validate() error {
	if l.bytes < 0 {
		return fmt.Errorf("%d bytes is negative", l.bytes)
	}
	if !(l.percent >= 0 && l.percent <= 100) {
		return fmt.Errorf("%v%% is not within 0 and 100", l.percent)
	}
	if l.percent > 0 && l.percent < minPercent {
		return fmt.Errorf("%v%% is less than %v%%", l.percent, minPercent)
	}
	return nil
}

// unlimitedBytes is the resolved form of no limit.
const unlimitedBytes = math.MaxInt64

// resolve returns the limit of type t in bytes. The types other than Host have
// no memory behind them, so a limit that asks for some is refused.
func (l Limit) resolve(t MemType) (int64, error) {
	if err := l.validate(); err != nil {
		return 0, err
	}
	zero := l.kind == limitDefault || l.kind == limitOff || l == Bytes(0) || l == Percent(0)
	if t != Host {
		if zero {
			return 0, nil
		}
		return 0, errNoTier(t)
	}
	switch l.kind {
	case limitBytes:
		return l.bytes, nil
	case limitPercent:
		total, err := physicalMemory()
		if err != nil {
			return 0, err
		}
		return int64(float64(total) * l.percent / 100), nil
	case limitOff:
		return 0, nil
	}
	return unlimitedBytes, nil
}

// errNoTier says why memory of type t cannot be had.
func errNoTier(t MemType) error {
	missing := "a CUDA device, which this build cannot open"
	if t == Disk {
		missing = "a disk tier, which this build does not have"
	}
	return fmt.Errorf("%s memory needs %s: %w", t, missing, errors.ErrUnsupported)
}

// physicalMemory returns the bytes of memory of this machine.
func physicalMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read physical memory: %w", err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			if err != nil {
				return 0, fmt.Errorf("read physical memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.Join(errors.New("read physical memory: no MemTotal in /proc/meminfo"), lines.Err())
}
