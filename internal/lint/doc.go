// Package lint holds the rules of this repository that no ready-made linter
// knows, as Go tests: which package may import which, what may stand where,
// how long a file may be, what the public API is, and that the lists in docs/
// name tests that exist. It has no code outside its tests, and those import
// nothing of this module. Every rule is shown to be able to fail.
package lint
