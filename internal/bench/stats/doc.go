// Package stats sums up samples of a measurement: exact integers in, order
// statistics and moments out. It keeps nothing.
package stats
