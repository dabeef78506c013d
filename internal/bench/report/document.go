package report

import "github.com/sluice-engine/sluice/internal/bench/stats"

// Schema names the layout of a Document.
const Schema = "sluice.bench/1"

// Document is the whole result of one command.
type Document struct {
	Schema     string             `json:"schema"`
	Command    string             `json:"command"`
	Run        Run                `json:"run"`
	Ranks      int                `json:"ranks"`
	Config     any                `json:"config"`
	Samples    []Sample           `json:"samples"`
	Summary    Summary            `json:"summary"`
	Pairs      [][]int64          `json:"pairs"` // bytes of the last run, by sender and receiver
	Counters   map[string]Counter `json:"counters"`
	Spill      Spill              `json:"spill"`
	Memory     map[string]Memory  `json:"memory"`
	Overbooked int64              `json:"overbooked_bytes"`
	Validation Validation         `json:"validation"`
	Transports []Transport        `json:"transports"`
	Fallbacks  []Fallback         `json:"fallbacks"`
	Errors     []Failure          `json:"errors"`
	Table      *Table             `json:"table,omitempty"`
	Complete   bool               `json:"complete"`
}

// New returns an empty document, all of whose lists are there.
func New(command string) *Document {
	return &Document{
		Schema: Schema, Command: command, Samples: []Sample{}, Pairs: [][]int64{}, Counters: map[string]Counter{},
		Memory: map[string]Memory{}, Transports: []Transport{}, Fallbacks: []Fallback{}, Errors: []Failure{},
	}
}

// Run says where and with what the numbers were taken.
type Run struct {
	ID         string            `json:"id"`
	Argv       []string          `json:"argv"`
	Start      string            `json:"start"` // RFC 3339
	End        string            `json:"end"`
	Host       []string          `json:"host"`
	Versions   map[string]string `json:"versions"`
	Env        map[string]string `json:"env"` // variables of launchers, transports and sluice; no secrets
	Binding    string            `json:"binding"`
	Transports []string          `json:"transports"`
	Labels     map[string]string `json:"labels"`
}

// Sample is one rank's part of one run.
type Sample struct {
	Run            int   `json:"run"` // from 0, warmups counted
	Warmup         bool  `json:"warmup"`
	Rank           int   `json:"rank"`
	Elapsed        int64 `json:"elapsed_ns"`         // from the barrier to this rank's end
	FirstPartition int64 `json:"first_partition_ns"` // from the barrier to the first partition in hand; 0: owns none
	BytesSent      int64 `json:"bytes_sent"`         // to other ranks
	BytesReceived  int64 `json:"bytes_recv"`         // from other ranks
	BytesSelf      int64 `json:"bytes_self"`         // kept by the rank itself
	Wait           int64 `json:"wait_ns"`            // spent waiting for memory and for partitions
}

// Summary sums up the measured runs, warmups left out. The rates divide by the
// median of Elapsed.
type Summary struct {
	Bytes          int64         `json:"bytes"`      // inserted by all ranks in one run
	WireBytes      int64         `json:"wire_bytes"` // of them to another rank
	Elapsed        stats.Summary `json:"elapsed_ns"` // barrier to slowest rank, over runs
	RankElapsed    stats.Summary `json:"rank_elapsed_ns"`
	FirstPartition stats.Summary `json:"first_partition_ns"` // over runs and ranks
	Alg            int64         `json:"alg_bytes_per_s"`    // all bytes
	Bus            int64         `json:"bus_bytes_per_s"`    // alg x (ranks-1) / ranks
	Wire           int64         `json:"wire_bytes_per_s"`   // bytes that changed rank
	Peak           Peak          `json:"peak_bytes"`
	Skew           float64       `json:"skew"` // most bytes on one rank / their mean
	Slowest        int           `json:"slowest_rank"`
}

// Peak is the most accounted memory of a type that one rank had.
type Peak struct {
	Device int64 `json:"device"`
	Pinned int64 `json:"pinned"`
	Host   int64 `json:"host"`
	Disk   int64 `json:"disk"`
}

// Counter sums a number up over ranks.
type Counter struct {
	Count int   `json:"count"` // of ranks
	Sum   int64 `json:"sum"`
	Max   int64 `json:"max"`
}

// Add counts one rank's value.
func (c *Counter) Add(v int64) {
	c.Count++
	c.Sum += v
	c.Max = max(c.Max, v)
}

// Spill is traffic to and from disk. Nothing spills yet: all are zero.
type Spill struct {
	OutBytes Counter `json:"out_bytes"`
	InBytes  Counter `json:"in_bytes"`
	OutTime  Counter `json:"out_ns"`
	InTime   Counter `json:"in_ns"`
	Files    Counter `json:"files"`
}

// Memory is one memory type over all ranks.
type Memory struct {
	Peak  int64  `json:"peak"`  // worst rank
	Limit *int64 `json:"limit"` // per rank; nil: none
}

// Validation compares what was inserted with what was received, over all runs.
type Validation struct {
	Enabled   bool   `json:"enabled"`
	RowsIn    int64  `json:"rows_in"`
	RowsOut   int64  `json:"rows_out"`
	ChunksIn  int64  `json:"chunks_in"`
	ChunksOut int64  `json:"chunks_out"`
	Digest    string `json:"digest"` // of what was inserted
	Wrong     int64  `json:"wrong"`
}

// Transport says which pairs of ranks a transport carried.
type Transport struct {
	Name  string   `json:"name"`
	Pairs [][2]int `json:"pairs"`
}

// Fallback is a better way that was not taken.
type Fallback struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Failure is an error as it was printed.
type Failure struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	Message string `json:"message"`
	Exit    int    `json:"exit"`
}

// Table is the result of the table workload.
type Table struct {
	RowsIn  int64      `json:"rows_in"`
	Groups  int64      `json:"groups"`
	Keys    []string   `json:"keys"`
	Columns []string   `json:"columns"` // of the result, keys first
	Top     []Group    `json:"top"`     // at most 20, by count and then by key
	PerRank []RankRows `json:"per_rank"`
}

// Group is one row of the result.
type Group struct {
	Key    []any          `json:"key"`
	Values map[string]any `json:"values"`
}

// RankRows is how the rows were spread.
type RankRows struct {
	Rank      int   `json:"rank"`
	RowsRead  int64 `json:"rows_read"`
	RowsOwned int64 `json:"rows_owned"`
}
