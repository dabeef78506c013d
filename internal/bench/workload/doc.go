// Package workload runs the workloads of shuffle-bench: it starts the ranks of a
// job, has each of them insert, exchange, extract and check, and brings what
// they found to rank 0. A workload is what one rank does in one run; Measure
// repeats it. Nothing here prints, exits or reads the environment.
package workload
