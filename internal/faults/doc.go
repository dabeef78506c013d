// Package faults damages one received chunk on purpose, so that a test can show
// that validation notices. It does so only in binaries built with the tag
// faults, and there only when SLUICE_FAULTS names what to do: flip, drop,
// duplicate or misroute. In other binaries it compiles to nothing.
package faults
