// Package fifo is a queue for very many small items: linked blocks instead of
// one growing slice, so that a million queued items take no more than their own
// size, and nothing is copied when it grows.
package fifo
