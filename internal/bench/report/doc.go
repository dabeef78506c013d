// Package report writes what a benchmark found: as JSON (schema sluice.bench/1,
// described in docs/json-schema), as CSV, as Markdown and as the table people
// read. A Document holds exact integers in base units, bytes and nanoseconds;
// only the table rounds.
package report
