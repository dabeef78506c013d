// Package flow reads tables into Arrow record batches, groups and sums them, and
// writes them back to files. An Input is one file (Parquet, Arrow IPC or CSV);
// its Share is what one rank reads of it, the same cuts on every rank. A Writer
// makes one file, which appears whole or not at all. An Aggregate is the state
// of a GROUP BY over the rows it was given.
//
// The package never talks to another rank. Batches live on the Go heap, outside
// the accounted memory, and are bounded by Config.BatchRows.
package flow
