package tables_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/tables"
)

var flights = arrow.NewSchema([]arrow.Field{
	{Name: "origin", Type: arrow.BinaryTypes.String},
	{Name: "distance", Type: arrow.PrimitiveTypes.Int64},
}, nil)

func exampleBatch() arrow.RecordBatch {
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, flights, strings.NewReader(`[
		{"origin": "ORD", "distance": 733}, {"origin": "ATL", "distance": 404},
		{"origin": "ORD", "distance": 867}, {"origin": "ACY", "distance": 98}]`))
	if err != nil {
		log.Fatal(err)
	}
	return b
}

// Rows are split by the hash of their origin, and each chunk becomes a batch
// again where it arrives.
func Example() {
	ctx := context.Background()
	mem, err := buffer.NewResource(nil, nil, buffer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	codec, err := tables.NewCodec(flights)
	if err != nil {
		log.Fatal(err)
	}
	split, err := tables.NewPartitioner(codec, tables.Config{Keys: []string{"origin"}, Parts: 4})
	if err != nil {
		log.Fatal(err)
	}
	batch := exampleBatch()
	for chunk, err := range split.Partition(ctx, mem, batch) {
		if err != nil {
			log.Fatal(err)
		}
		got, err := codec.Unpack(ctx, chunk.Data) // on the rank that owns chunk.Part
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("partition %d: %v %v\n", chunk.Part, got.Column(0), got.Column(1))
		got.Release() // gives the chunk's memory back
	}
	batch.Release()
	if err := mem.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// partition 2: ["ORD" "ORD"] [733 867]
	// partition 3: ["ATL" "ACY"] [404 98]
}

// A describing Codec makes chunks that any rank can read.
func ExampleUnpack() {
	ctx := context.Background()
	mem, err := buffer.NewResource(nil, nil, buffer.Config{})
	if err != nil {
		log.Fatal(err)
	}
	codec, err := tables.NewCodec(flights)
	if err != nil {
		log.Fatal(err)
	}
	batch := exampleBatch()
	defer batch.Release()
	chunk, err := codec.Describing().Pack(ctx, mem, batch)
	if err != nil {
		log.Fatal(err)
	}
	got, err := tables.Unpack(ctx, chunk)
	if err != nil {
		log.Fatal(err)
	}
	defer got.Release()
	fmt.Println(got.NumRows(), got.Schema().Field(0).Name, got.Column(0))
	// Output: 4 origin ["ORD" "ATL" "ORD" "ACY"]
}

// The sum of rows is the same however they are cut and ordered.
func ExampleDigester() {
	batch := exampleBatch()
	defer batch.Release()
	sum := func(batches ...arrow.RecordBatch) tables.MultisetSum {
		d, err := tables.NewDigester(flights)
		if err != nil {
			log.Fatal(err)
		}
		for _, b := range batches {
			if err := d.Add(b); err != nil {
				log.Fatal(err)
			}
		}
		return d.Sum()
	}
	head, tail := batch.NewSlice(0, 1), batch.NewSlice(1, 4)
	defer head.Release()
	defer tail.Release()
	fmt.Println(sum(batch) == sum(tail, head), sum(batch) == sum(head))
	// Output: true false
}
