//go:build !invariants && !race

package invariant

// Enabled tells whether this is a checked build.
const Enabled = false
