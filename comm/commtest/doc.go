// Package commtest is the conformance suite of transports. A driver calls Run
// with a function that makes the transports of n connected ranks; what the
// suite does not ask for is not promised.
//
// Wire turns the transport of in-process ranks into one that behaves like a
// network: it copies, delays and reorders, from a seed.
package commtest
