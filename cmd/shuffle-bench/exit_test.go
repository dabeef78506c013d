package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/bench/workload"
)

// An error keeps its code through a rank and through another rank's report of it.
func TestExitCodes(t *testing.T) {
	peer := func(cause error) error { return &comm.PeerError{Rank: 2, Host: "h", Since: time.Second, Cause: cause} }
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("anything"), 1},
		{&buffer.NoMemoryError{}, 1},
		{buffer.ErrTooLarge, 1},
		{&comm.MismatchError{}, 1},
		{flow.ErrDamaged, 1},
		{flow.ErrOverflow, 1},
		{flow.ErrUnreadable, 4},
		{flow.ErrNoColumn, 2},
		{&buffer.CorruptError{}, 3},
	} {
		for _, err := range []error{c.err, fmt.Errorf("act: %w", c.err), &workload.RankError{Rank: 1, Err: c.err}} {
			if got := classifyCode(err); got != c.code {
				t.Errorf("%v: exit %d, want %d", err, got, c.code)
			}
		}
	}
	if got := classifyCode(peer(&buffer.NoMemoryError{})); got != 1 {
		t.Errorf("a peer without memory: exit %d", got)
	}
	if got := classifyCode(peer(errors.New("gone"))); got != 5 {
		t.Errorf("a lost peer: exit %d", got)
	}
}

func TestFailureIsOneLine(t *testing.T) {
	a := newApp([]string{"x"}, nil, nil, nil)
	f := a.failure(context.Background(), &workload.RankError{Rank: 3, Err: errors.Join(errors.New("first\nsecond"), flow.ErrDamaged)})
	if f.Rank != 3 || f.Exit != 1 || f.Message != "first; second; damaged. Get a whole copy of the file" || strings.Contains(f.Message, "\n") {
		t.Errorf("%+v", f)
	}
}
