// Package invariant holds the checks that are loud in checked builds and free
// in normal ones. A checked build has the tag invariants or the race detector
// on. A failed check is a bug of this module, never an outside condition:
// those are errors.
package invariant

import "fmt"

// Check panics in checked builds when ok is false. In normal builds it
// compiles to nothing; guard arguments that are costly to compute by Enabled.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}
