package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/bench/workload"
	"github.com/sluice-engine/sluice/internal/faults"
)

// job is one measurement from its flags to its reports.
type job struct {
	*app
	*common
	doc     *report.Document
	running *workload.Job
	faults  *faults.Injector
}

// runFunc runs on ranks that are started and returns what they found, by run
// and rank.
type runFunc func(ctx context.Context, j *job) ([][]workload.RankRun, error)

// measure starts the ranks, has do run on them, and reports. config is what the
// report says about the workload.
func (a *app) measure(ctx context.Context, command string, c *common, config any, do runFunc) error {
	j := &job{app: a, common: c, doc: a.document(command, c, config)}
	err := j.run(ctx, do)
	j.doc.Run.End = time.Now().Format(time.RFC3339Nano)
	j.doc.Complete = err == nil
	if err == nil && j.doc.Validation.Wrong > 0 {
		err = &codedError{exitWrong, &wrongError{j.doc.Validation}}
	}
	if err != nil {
		j.doc.Errors = append(j.doc.Errors, a.failure(ctx, err))
	}
	return errors.Join(err, j.write(err))
}

func (j *job) run(ctx context.Context, do runFunc) (err error) {
	if err := j.check(); err != nil {
		return err
	}
	if err := j.transport(); err != nil {
		return err
	}
	if j.faults, err = faults.FromEnv(); err != nil {
		return usage("%w", err)
	}
	if j.running, err = workload.StartInproc(j.ranks, j.limit.limit); err != nil {
		return err
	}
	j.doc.Memory["host"] = report.Memory{Limit: limitBytes(j.running.HostLimit())}
	runs, err := do(ctx, j)
	if err == nil {
		j.take(runs)
	}
	if cerr := j.running.Close(); err == nil {
		err = cerr
	}
	return err
}

// transport checks that the ranks asked for can be had.
func (j *job) transport() error {
	l, err := j.launcher()
	if err != nil {
		return err
	}
	j.quiet = l.rank > 0
	name := j.comm
	if name == "" {
		name = "inproc"
		if l.size > 1 {
			name = "ucx"
		}
	}
	known := slices.IndexFunc(transports, func(t transport) bool { return t.name == name })
	switch {
	case known < 0:
		return usage("--comm is %q: want inproc, ucx or mpi", name)
	case transports[known].reason != "":
		return missing("start transport %s: not built: %s. Use -C inproc for ranks in one process", name, transports[known].reason)
	case l.size > 1:
		return usage("start transport inproc: %s started %d processes, whose ranks inproc cannot join. Start one process without it", l, l.size)
	case j.expectRanks > 0 && j.expectRanks != j.ranks:
		return missing("start ranks: there are %d, %d are expected (%s, transport inproc). Set --ranks", j.ranks, j.expectRanks, l)
	}
	j.carriedBy(name)
	return nil
}
