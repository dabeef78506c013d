//go:build faults

package faults

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
)

// Variable is the environment variable that names the fault.
const Variable = "SLUICE_FAULTS"

// Injector damages one chunk of all that ask it. It may be shared by the ranks
// of a process.
type Injector struct {
	kind string
	done atomic.Bool
}

// FromEnv returns the Injector that SLUICE_FAULTS asks for; unset, it damages
// nothing.
func FromEnv() (*Injector, error) {
	kind := os.Getenv(Variable)
	if !slices.Contains([]string{"", "flip", "drop", "duplicate", "misroute"}, kind) {
		return nil, fmt.Errorf("faults: %s is %q: want flip, drop, duplicate or misroute", Variable, kind)
	}
	return &Injector{kind: kind}, nil
}

// Next says what to do with a chunk that was received. The first one is damaged.
func (in *Injector) Next() Action {
	if in == nil || in.kind == "" || in.done.Swap(true) {
		return Action{}
	}
	return Action{in.kind}
}

// Action is what happens to one chunk.
type Action struct{ kind string }

// Corrupt flips a bit in the middle of the chunk's bytes.
func (a Action) Corrupt(b []byte) {
	if a.kind == "flip" && len(b) > 0 {
		b[len(b)/2] ^= 0x10
	}
}

// Times is how often the chunk is handed on.
func (a Action) Times() int {
	switch a.kind {
	case "drop":
		return 0
	case "duplicate":
		return 2
	}
	return 1
}

// Part is the partition that the chunk is taken for.
func (a Action) Part(p uint32) uint32 {
	if a.kind == "misroute" {
		return p ^ 1
	}
	return p
}
