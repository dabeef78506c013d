package workload

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/faults"
	"github.com/sluice-engine/sluice/tables"
)

// TableConfig says what the table workload reads and makes.
type TableConfig struct {
	Plan
	Inputs       []string         `json:"inputs"`
	Keys         []string         `json:"keys"`
	Select       []string         `json:"select"`    // columns of the output; nil: all
	Aggregate    bool             `json:"aggregate"` // group by Keys
	Aggs         []flow.Agg       `json:"-"`
	AggNames     []string         `json:"aggs"`
	PartsPerRank int              `json:"partitions_per_rank"`
	Owner        Owner            `json:"owner"`
	SendOrder    comm.Order       `json:"send_order"`
	Output       string           `json:"output"` // directory; empty: none
	Format       flow.Format      `json:"format"`
	Faults       *faults.Injector `json:"-"`
}

// Table is a workload of real data: each rank reads its share of the inputs,
// partitions the rows by the hash of the keys, exchanges them, and aggregates
// the rows of its partitions, or writes them to a file each, or both.
type Table struct {
	cfg     TableConfig
	inputs  []*flow.Input
	columns []string // that are read and exchanged
	output  []int    // of them, those that are written
	codec   *tables.Codec
}

// OpenTable opens the inputs and checks all that can be wrong before a rank
// starts. Close the Table.
func OpenTable(cfg TableConfig) (*Table, error) {
	t := &Table{cfg: cfg}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Table) open() error {
	for _, path := range t.cfg.Inputs {
		in, err := flow.Open(path, flow.Config{})
		if err != nil {
			return err
		}
		t.inputs = append(t.inputs, in)
	}
	first := t.inputs[0]
	schema, err := t.choose(first)
	if err != nil {
		return err
	}
	for _, in := range t.inputs[1:] {
		other, err := t.choose(in)
		if err != nil {
			return err
		}
		if !sameColumns(schema, other) {
			return fmt.Errorf("open %s: %w: its columns differ from those of %s", in.Path(), flow.ErrDamaged, first.Path())
		}
	}
	if t.codec, err = tables.NewCodec(schema); err != nil {
		return fmt.Errorf("exchange columns: %w: %w", flow.ErrType, err)
	}
	if _, err := tables.NewPartitioner(t.codec, tables.Config{Keys: t.cfg.Keys, Parts: 1}); err != nil {
		return err
	}
	if _, err := t.aggregate(); err != nil {
		return err
	}
	if t.cfg.Output != "" {
		return flow.MakeDir(t.cfg.Output)
	}
	return nil
}

// choose returns the schema of the columns that are needed of an input.
func (t *Table) choose(in *flow.Input) (*arrow.Schema, error) {
	t.columns, t.output = nil, nil
	if t.cfg.Output != "" {
		t.columns = slices.Clone(t.cfg.Select)
		if t.columns == nil {
			for _, f := range in.Schema().Fields() {
				t.columns = append(t.columns, f.Name)
			}
		}
		for i := range t.columns {
			t.output = append(t.output, i)
		}
	}
	for _, name := range flow.Needed(t.cfg.Keys, t.cfg.Aggs) {
		if !slices.Contains(t.columns, name) {
			t.columns = append(t.columns, name)
		}
	}
	cols, err := flow.Columns(in.Schema(), t.columns)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", in.Path(), err)
	}
	return project(in.Schema(), cols), nil
}

func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

func sameColumns(a, b *arrow.Schema) bool {
	return slices.EqualFunc(a.Fields(), b.Fields(), func(x, y arrow.Field) bool {
		return x.Name == y.Name && arrow.TypeEqual(x.Type, y.Type) && x.Nullable == y.Nullable
	})
}

// aggregate returns an empty aggregation, nil if none is asked for.
func (t *Table) aggregate() (*flow.Aggregate, error) {
	if !t.cfg.Aggregate {
		return nil, nil
	}
	aggs := slices.DeleteFunc(slices.Clone(t.cfg.Aggs), func(a flow.Agg) bool { return a == flow.Agg{Func: flow.Count} })
	return flow.NewAggregate(t.codec.Schema(), t.cfg.Keys, aggs) // which counts rows anyway
}

// Close closes the inputs.
func (t *Table) Close() error {
	var errs []error
	for _, in := range t.inputs {
		errs = append(errs, in.Close())
	}
	t.inputs = nil
	return errors.Join(errs...)
}
