//go:build invariants || race

package buffer

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

const (
	stackDepth   = 16
	stacksToShow = 8
)

// creations remembers where each live buffer of a Resource was made.
type creations struct {
	mu     sync.Mutex
	stacks map[*Buffer][]uintptr
}

func (c *creations) add(b *Buffer) {
	pcs := make([]uintptr, stackDepth)
	pcs = pcs[:runtime.Callers(3, pcs)]
	c.put(b, pcs)
}

func (c *creations) put(b *Buffer, pcs []uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil {
		c.stacks = make(map[*Buffer][]uintptr)
	}
	c.stacks[b] = pcs
}

func (c *creations) remove(b *Buffer) []uintptr {
	c.mu.Lock()
	defer c.mu.Unlock()
	pcs := c.stacks[b]
	delete(c.stacks, b)
	return pcs
}

// move takes b over from another Resource's record.
func (c *creations) move(b *Buffer, from *creations) { c.put(b, from.remove(b)) }

// report says where the first few live buffers were made.
func (c *creations) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s strings.Builder
	shown := 0
	for b, pcs := range c.stacks {
		if shown == stacksToShow {
			break
		}
		shown++
		fmt.Fprintf(&s, "\n%s (%s) made at:", formatBytes(b.len), b.holder)
		frames := runtime.CallersFrames(pcs)
		for more := len(pcs) > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			fmt.Fprintf(&s, "\n\t%s %s:%d", f.Function, f.File, f.Line)
		}
	}
	return s.String()
}
