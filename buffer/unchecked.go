//go:build !invariants && !race

package buffer

// creations records nothing in normal builds.
type creations struct{}

func (*creations) add(*Buffer)              {}
func (*creations) remove(*Buffer)           {}
func (*creations) move(*Buffer, *creations) {}
func (*creations) report() string           { return "" }
