package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/bench/workload"
)

// document starts the report of a command.
func (a *app) document(command string, c *common, config any) *report.Document {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	d := report.New(command)
	d.Run = report.Run{
		ID: hex.EncodeToString(id), Argv: a.argv, Start: time.Now().Format(time.RFC3339Nano), Host: []string{a.host},
		Versions: map[string]string{"sluice": version, "commit": commitText(), "go": runtime.Version()},
		Env:      a.capturedEnv(), Binding: "none", Transports: []string{}, Labels: c.labels,
	}
	if d.Run.Labels == nil {
		d.Run.Labels = map[string]string{}
	}
	d.Ranks, d.Config = c.ranks, config
	d.Validation.Enabled = c.plan.Validate
	d.Memory["host"] = report.Memory{}
	return d
}

// carriedBy notes that one transport carries all pairs.
func (j *job) carriedBy(name string) {
	t := report.Transport{Name: name, Pairs: [][2]int{}}
	for src := range j.doc.Ranks {
		for dst := range j.doc.Ranks {
			if src != dst {
				t.Pairs = append(t.Pairs, [2]int{src, dst})
			}
		}
	}
	j.doc.Transports = []report.Transport{t}
	j.doc.Run.Transports = []string{name}
}

// take enters what the ranks found, by run and rank.
func (j *job) take(runs [][]workload.RankRun) {
	d := j.doc
	for _, ranks := range runs {
		d.Pairs = make([][]int64, len(ranks))
		for _, r := range ranks {
			d.Samples = append(d.Samples, report.Sample{
				Run: r.Run, Warmup: r.Warmup, Rank: r.Rank, Elapsed: r.Elapsed, FirstPartition: r.FirstPartition,
				BytesSent: r.BytesSent, BytesReceived: r.BytesReceived, BytesSelf: r.BytesSelf, Wait: r.Wait,
			})
			d.Pairs[r.Rank] = r.SentTo
		}
	}
	d.Summarize()
	j.countOver(runs)
	in, out, wrong := workload.Check(runs)
	d.Validation = report.Validation{
		Enabled: d.Validation.Enabled, Digest: in.String(), Wrong: wrong,
		RowsIn: int64(in.Rows.Rows), RowsOut: int64(out.Rows.Rows), ChunksIn: in.Chunks, ChunksOut: out.Chunks,
	}
	memory := d.Memory["host"]
	memory.Peak = d.Summary.Peak.Host
	d.Memory["host"] = memory
}

// countOver sums the counters of each rank up over all runs, warmups included.
func (j *job) countOver(runs [][]workload.RankRun) {
	if len(runs) == 0 {
		return
	}
	for rank, last := range runs[len(runs)-1] { // what communicators and memory count since their start
		var sent, received, self int64
		for _, ranks := range runs {
			sent, received, self = sent+ranks[rank].ChunksSent, received+ranks[rank].ChunksReceived, self+ranks[rank].ChunksSelf
		}
		for name, v := range map[string]int64{
			"chunks_sent": sent, "chunks_recv": received, "chunks_self": self,
			"payload_copied_bytes": last.PayloadCopies, "coalesced_bytes": last.Coalesced, "frames_dropped": last.Dropped,
		} {
			c := j.doc.Counters[name]
			c.Add(v)
			j.doc.Counters[name] = c
		}
		j.doc.Summary.Peak.Host = max(j.doc.Summary.Peak.Host, last.PeakHost)
	}
}

// wrongError tells that data was wrong.
type wrongError struct{ v report.Validation }

func (e *wrongError) Error() string {
	return fmt.Sprintf("validate: %d differences between what was inserted and what was received (chunks %d and %d, rows %d and %d). Do not use the data, and report it",
		e.v.Wrong, e.v.ChunksIn, e.v.ChunksOut, e.v.RowsIn, e.v.RowsOut)
}

// announce writes the header, unless a report takes standard output.
func (j *job) announce(perRank string) error {
	if j.stdoutTaken() {
		return nil
	}
	return j.doc.WriteHeader(j.stdout, perRank, j.plan.Runs, j.plan.Warmups)
}

// write writes the reports. After a failure that is the JSON alone, whose field
// complete says so.
func (j *job) write(failed error) error {
	var errs []error
	path := j.path(j.json)
	if failed == nil || j.doc.Complete {
		if !j.stdoutTaken() {
			errs = append(errs, j.doc.WriteText(j.stdout, path))
		}
		errs = append(errs, j.writeTo(j.path(j.csv), j.doc.WriteCSV), j.writeTo(j.path(j.md), j.doc.WriteMarkdown))
	}
	errs = append(errs, j.writeTo(path, func(w io.Writer) error { return report.EncodeJSON(w, j.doc) }))
	return errors.Join(errs...)
}

// path puts the id of the run for %r.
func (j *job) path(pattern string) string {
	return strings.ReplaceAll(pattern, "%r", j.doc.Run.ID)
}

// writeTo has write fill the file at path, or standard output for -. An empty
// path is none.
func (a *app) writeTo(path string, write func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return write(a.stdout)
	}
	return report.ToFile(path, write)
}

// limitBytes is the limit as the report has it.
func limitBytes(limit int64) *int64 {
	if limit == math.MaxInt64 {
		return nil
	}
	return &limit
}
