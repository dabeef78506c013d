//go:build !faults

package faults

// Injector damages nothing in this build.
type Injector struct{}

// FromEnv returns an Injector that damages nothing.
func FromEnv() (*Injector, error) { return nil, nil }

// Next says what to do with a chunk that was received: nothing.
func (*Injector) Next() Action { return Action{} }

// Action leaves a chunk as it is.
type Action struct{}

// Corrupt changes nothing.
func (Action) Corrupt([]byte) {}

// Times is how often the chunk is handed on.
func (Action) Times() int { return 1 }

// Part is the partition that the chunk is taken for.
func (Action) Part(p uint32) uint32 { return p }
