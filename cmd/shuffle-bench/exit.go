package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/bench/workload"
	"github.com/sluice-engine/sluice/shuffle"
	"github.com/sluice-engine/sluice/tables"
)

// The exit codes.
const (
	exitFailed  = 1 // damaged input, out of memory, ranks that differ, what else fails
	exitUsage   = 2 // flags, columns and limits that cannot work
	exitWrong   = 3 // wrong data
	exitMissing = 4 // input, transport, launcher or ranks are not what was asked for
	exitPeer    = 5 // peer lost
	exitSignal  = 128
)

// codedError is an error whose exit code is known where it is made. What to do
// about it is part of the text.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

func missing(format string, args ...any) error {
	return &codedError{exitMissing, fmt.Errorf(format, args...)}
}

// failure turns an error into what is printed and reported.
func (a *app) failure(ctx context.Context, err error) report.Failure {
	f := report.Failure{Host: a.host}
	var rank *workload.RankError
	if errors.As(err, &rank) {
		f.Rank = rank.Rank
	}
	var stopped signalError
	if errors.As(context.Cause(ctx), &stopped) {
		f.Exit = exitSignal + int(stopped.sig)
		f.Message = fmt.Sprintf("stop: %v. What was begun is cleaned up", stopped)
		return f
	}
	var advice string
	f.Exit, advice = classify(err)
	f.Message = strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	if advice != "" {
		f.Message += ". " + advice
	}
	return f
}

// classify returns the exit code of an error and what to do about it.
func classify(err error) (code int, advice string) {
	var (
		coded    *codedError
		noMemory *buffer.NoMemoryError
		corrupt  *buffer.CorruptError
		mismatch *comm.MismatchError
		peer     *comm.PeerError
	)
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.As(err, &coded):
		return coded.code, ""
	case is(flow.ErrNoColumn, tables.ErrNoColumn):
		return exitUsage, "Name columns that are there"
	case is(flow.ErrType, tables.ErrKeyType):
		return exitUsage, "Choose a column of another type"
	case is(flow.ErrNotEmpty):
		return exitUsage, "Give a directory that is empty or not there"
	case is(workload.ErrLimit):
		return exitUsage, "Raise --limit-host or make the chunks smaller"
	case is(flow.ErrUnreadable):
		return exitMissing, "Check the path and its permissions"
	case is(flow.ErrDamaged):
		return exitFailed, "Get a whole copy of the file"
	case is(flow.ErrOverflow):
		return exitFailed, "Aggregate a column of a wider type"
	case errors.As(err, &noMemory), is(buffer.ErrTooLarge):
		return exitFailed, "Raise --limit-host, or exchange less at once"
	case errors.As(err, &mismatch):
		return exitFailed, "Start all ranks with the same arguments"
	case errors.As(err, &corrupt):
		return exitWrong, "Report it: data was changed on its way"
	case errors.As(err, &peer):
		return exitPeer, "See what that rank printed"
	case is(shuffle.ErrInvalid):
		return exitUsage, ""
	}
	return exitFailed, ""
}
