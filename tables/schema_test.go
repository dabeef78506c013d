package tables

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestSchemaRoundTrip(t *testing.T) {
	var fields []arrow.Field
	for i, dt := range allTypes() {
		if dt.ID() == arrow.EXTENSION {
			continue // below
		}
		fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: dt, Nullable: i%2 == 0})
	}
	m := arrow.MapOf(tString, tInt8)
	m.KeysSorted = true
	fields = append(fields, arrow.Field{Name: "", Type: m})
	schema := arrow.NewSchema(fields, nil)
	enc, err := encodeSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeSchema(enc)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(schema) {
		t.Errorf("got %v, want %v", got, schema)
	}
	for n := range enc {
		if _, err := decodeSchema(enc[:n]); err == nil {
			t.Errorf("%d of %d bytes accepted", n, len(enc))
		}
	}
	if _, err := decodeSchema(append(enc, 0)); err == nil {
		t.Error("a byte too many accepted")
	}
}

func TestSchemaExtension(t *testing.T) {
	enc, err := encodeSchema(schemaOf(newLabelType()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeSchema(enc)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(schemaOf(tString)) {
		t.Errorf("got %v", got)
	}
}

// TestFingerprints pins the fingerprint, which ranks of different builds
// compare, and shows what it depends on.
func TestFingerprints(t *testing.T) {
	field := func(name string, dt arrow.DataType, nullable bool) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{{Name: name, Type: dt, Nullable: nullable}}, nil)
	}
	if got, want := newCodec(t, schemaOf(allTypes()...)).Fingerprint(), uint64(0xf3a9eb61097138f6); got != want {
		t.Errorf("fingerprint of all types %#x, want %#x", got, want)
	}
	seen := map[uint64]*arrow.Schema{}
	for _, s := range []*arrow.Schema{
		field("a", tInt32, true), field("a", tInt32, false), field("b", tInt32, true), field("a", tInt64, true),
		field("a", arrow.ListOf(tInt32), true), field("a", arrow.ListOfNonNullable(tInt32), true), arrow.NewSchema(nil, nil),
		field("a", &arrow.TimestampType{Unit: arrow.Second}, true), field("a", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, true),
		field("a", newLabelType(), true), field("a", tString, true),
	} {
		f := newCodec(t, s).Fingerprint()
		if o, ok := seen[f]; ok {
			t.Errorf("%v and %v have one fingerprint", s, o)
		}
		seen[f] = s
	}
	md := arrow.NewMetadata([]string{"k"}, []string{"v"})
	if newCodec(t, arrow.NewSchema(schemaOf(tInt8).Fields(), &md)).Fingerprint() != newCodec(t, schemaOf(tInt8)).Fingerprint() {
		t.Error("metadata changes the fingerprint")
	}
}

func TestDeepTypes(t *testing.T) {
	dt := arrow.DataType(tInt8)
	for range maxDepth + 1 {
		dt = arrow.ListOf(dt)
	}
	if _, err := NewCodec(schemaOf(dt)); err == nil {
		t.Error("accepted")
	}
	enc, err := encodeSchema(schemaOf(dt))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeSchema(enc); err == nil {
		t.Error("decoded")
	}
}
