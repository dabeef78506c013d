package workload

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/sluice-engine/sluice/flow"
)

// gatherGroups brings the groups of all ranks to rank 0; the others get nil.
// Ranks own different partitions, so no group is on two of them.
func gatherGroups(ctx context.Context, r *Rank, keys int, mine *flow.Aggregate) (*flow.Groups, error) {
	result, err := mine.Result()
	if err != nil {
		return nil, err
	}
	defer result.Release()
	encoded, err := encodeBatch(result)
	if err != nil {
		return nil, fmt.Errorf("send groups: %w", err)
	}
	all, err := r.gather(ctx, encoded)
	if err != nil || all == nil {
		return nil, err
	}
	parts := make([]arrow.RecordBatch, len(all))
	for i, b := range all {
		if parts[i], err = decodeBatch(b); err != nil {
			return nil, fmt.Errorf("receive groups of rank %d: %w", i, err)
		}
		defer parts[i].Release()
	}
	return flow.MergeGroups(keys, parts)
}

func encodeBatch(batch arrow.RecordBatch) ([]byte, error) {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(batch.Schema()))
	if err := w.Write(batch); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decodeBatch(b []byte) (arrow.RecordBatch, error) {
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	batch, err := r.Read()
	if err != nil {
		return nil, err
	}
	batch.Retain()
	return batch, nil
}
