package flow

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// The Arrow library makes as many fields as a schema claims before it reads one,
// so a damaged count could take all memory. These checks walk over a schema as it
// is stored (a FlatBuffers table) and refuse counts that its bytes cannot hold.
// Everything else that may be wrong in it the library finds itself.

var errSchema = errors.New("the Arrow schema is cut off or garbled")

const (
	maxSchemaBytes = 64 << 20
	maxNesting     = 128
)

// Slots of the tables in Arrow's Message.fbs, Schema.fbs and File.fbs.
const (
	messageHeader  = 2
	messageBody    = 3 // length, 0 for a schema
	footerSchema   = 1
	schemaFields   = 1
	schemaMetadata = 2
	fieldChildren  = 5
	fieldMetadata  = 6
)

// checkStreamSchema checks the first message of an Arrow stream.
func checkStreamSchema(r io.Reader) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return errSchema
	}
	if binary.LittleEndian.Uint32(head[:]) == 0xffffffff { // absent before Arrow 0.15
		if _, err := io.ReadFull(r, head[:4]); err != nil {
			return errSchema
		}
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxSchemaBytes {
		return errSchema
	}
	message, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil || len(message) < int(n) {
		return errSchema
	}
	root, ok := follow(message, 0)
	if !ok {
		return errSchema
	}
	if at, ok := root.field(messageBody); !ok || at > len(message)-8 || at > 0 && binary.LittleEndian.Uint64(message[at:]) != 0 {
		return errSchema
	}
	return checkSchema(root, messageHeader)
}

// checkFileSchema checks the footer of an Arrow file: footer, its length, magic.
func checkFileSchema(f *tracked) error {
	const tail = 4 + len("ARROW1")
	if f.size < int64(tail) {
		return errSchema
	}
	var end [tail]byte
	if _, err := f.ReadAt(end[:], f.size-int64(tail)); err != nil && err != io.EOF {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if string(end[4:]) != "ARROW1" {
		return errors.New("no footer at the end of the file")
	}
	if n > maxSchemaBytes || n > f.size-int64(tail) {
		return errSchema
	}
	footer := make([]byte, n)
	if _, err := f.ReadAt(footer, f.size-int64(tail)-n); err != nil {
		return err
	}
	root, ok := follow(footer, 0)
	if !ok {
		return errSchema
	}
	return checkSchema(root, footerSchema)
}

// checkStoredSchema checks the schema that Arrow writers keep in Parquet files.
func checkStoredSchema(encoded string) error {
	decode := base64.StdEncoding
	if len(encoded)%4 != 0 {
		decode = base64.RawStdEncoding
	}
	return checkStreamSchema(base64.NewDecoder(decode, strings.NewReader(encoded)))
}

// checkSchema checks the schema in a slot of the root table.
func checkSchema(root fbTable, slot int) error {
	schema, ok := root.child(slot)
	if !ok {
		return errSchema
	}
	w := schemaWalk{budget: len(root.b)}
	if !schema.vectorFits(schemaMetadata) || !w.fields(schema, schemaFields, 0) {
		return errSchema
	}
	return nil
}

// schemaWalk visits fields. Offsets may make several vectors share tables, so
// the number of visits is bounded too: a field takes more than a byte.
type schemaWalk struct{ budget int }

func (w *schemaWalk) fields(t fbTable, slot, depth int) bool {
	start, n, ok := t.vector(slot)
	if !ok || depth > maxNesting {
		return false
	}
	for i := range n {
		if w.budget--; w.budget < 0 {
			return false
		}
		field, ok := follow(t.b, start+4*i)
		if !ok || !field.vectorFits(fieldMetadata) || !w.fields(field, fieldChildren, depth+1) {
			return false
		}
	}
	return true
}

// fbTable is a FlatBuffers table at pos with its table of slots.
type fbTable struct {
	b         []byte
	pos       int
	slots     int // position of the table of slots
	slotBytes int
}

func u16(b []byte, at int) (int, bool) {
	if at < 0 || at+2 > len(b) {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(b[at:])), true
}

func u32(b []byte, at int) (int, bool) {
	if at < 0 || at+4 > len(b) {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(b[at:])), true
}

// follow reads the table that the offset at at points to.
func follow(b []byte, at int) (fbTable, bool) {
	off, ok := u32(b, at)
	if !ok {
		return fbTable{}, false
	}
	t := fbTable{b: b, pos: at + off}
	back, ok := u32(b, t.pos)
	if !ok {
		return t, false
	}
	t.slots = t.pos - int(int32(back))
	t.slotBytes, ok = u16(b, t.slots)
	return t, ok
}

// field returns where the value of a slot is, 0 if it is absent.
func (t fbTable) field(slot int) (int, bool) {
	at := 4 + 2*slot
	if at >= t.slotBytes {
		return 0, true
	}
	off, ok := u16(t.b, t.slots+at)
	if !ok || off == 0 {
		return 0, ok
	}
	return t.pos + off, true
}

func (t fbTable) child(slot int) (fbTable, bool) {
	at, ok := t.field(slot)
	if !ok || at == 0 {
		return fbTable{}, false
	}
	return follow(t.b, at)
}

// vector returns the first element and the number of elements of a vector of
// offsets, none if it is absent.
func (t fbTable) vector(slot int) (start, n int, ok bool) {
	at, ok := t.field(slot)
	if !ok || at == 0 {
		return 0, 0, ok
	}
	off, ok := u32(t.b, at)
	if !ok {
		return 0, 0, false
	}
	n, ok = u32(t.b, at+off)
	start = at + off + 4
	return start, n, ok && n <= (len(t.b)-start)/4
}

func (t fbTable) vectorFits(slot int) bool {
	_, _, ok := t.vector(slot)
	return ok
}
