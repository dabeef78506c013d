package flow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// csvSource reads comma-separated text with a header line. Column types are
// found in the first inferBytes, by the same rule on every rank.
type csvSource struct {
	file  *tracked
	cfg   Config
	sch   *arrow.Schema
	first int64 // offset of the first byte after the header
}

const (
	inferBytes = 1 << 20
	csvBuffer  = 256 << 10
)

func openCSV(f *tracked, cfg Config) (source, error) {
	src := &csvSource{file: f, cfg: cfg}
	var bom int64
	mark := make([]byte, 3)
	if n, _ := f.ReadAt(mark, 0); bytes.Equal(mark[:n], []byte("\xef\xbb\xbf")) {
		bom = 3
	}
	r := src.records(bom, f.size)
	header, err := r.Read()
	if err != nil {
		return nil, src.badLine(err, bom)
	}
	names := make([]string, len(header))
	seen := map[string]bool{}
	for i, name := range header {
		if name == "" || seen[name] {
			return nil, fmt.Errorf("line 1: column %d has no name of its own: %q", i+1, name)
		}
		seen[name], names[i] = true, string([]byte(name))
	}
	src.first = bom + r.InputOffset()
	types, err := src.infer(len(names))
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: types[i], Nullable: types[i].ID() != arrow.STRING}
	}
	src.sch = arrow.NewSchema(fields, nil)
	return src, nil
}

func (src *csvSource) schema() *arrow.Schema { return src.sch }

// records reads the bytes [from, to) as records.
func (src *csvSource) records(from, to int64) *csv.Reader {
	r := csv.NewReader(src.buffered(from, to))
	r.ReuseRecord = true
	return r
}

func (src *csvSource) buffered(from, to int64) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(src.file, from, to-from), int(min(to-from+1, csvBuffer)))
}

// infer reads the records that begin in the first inferBytes after the header.
func (src *csvSource) infer(columns int) ([]arrow.DataType, error) {
	r := src.records(src.first, src.file.size)
	r.FieldsPerRecord = columns
	guesses := make([]guess, columns)
	for r.InputOffset() < inferBytes {
		rec, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, src.badLine(err, src.first)
		}
		for i, field := range rec {
			guesses[i].see(field)
		}
	}
	types := make([]arrow.DataType, columns)
	for i := range types {
		types[i] = guesses[i].dataType()
	}
	return types, nil
}

func (src *csvSource) read(ctx context.Context, rank, size int, cols []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		from, to, err := src.cut(rank, size)
		if err != nil {
			yield(nil, err)
			return
		}
		r := src.records(from, to)
		r.FieldsPerRecord = src.sch.NumFields()
		rows := newRowBuilder(src.sch, cols)
		defer rows.release()
		for done := false; !done; {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			done, err = rows.fill(r, src.cfg.BatchRows)
			if err != nil {
				yield(nil, src.badLine(err, from))
				return
			}
			batch := rows.flush()
			more := batch.NumRows() == 0 || yield(batch, nil)
			batch.Release()
			if !more {
				return
			}
		}
	}
}

// cut returns the byte range of a rank. A rank starts after the first line end
// at or after its even share of the bytes; a newline inside quotes is no line
// end, so the quotes before it are counted: a rank reads the bytes before its
// range once, without parsing them.
func (src *csvSource) cut(rank, size int) (from, to int64, err error) {
	bytesOf := func(rank int) int64 { return src.first + fraction(src.file.size-src.first, rank, size) }
	s := quoteScanner{r: src.buffered(src.first, src.file.size), pos: src.first}
	from, to = src.first, src.file.size
	if rank > 0 {
		if from, err = s.lineEnd(bytesOf(rank)); err != nil {
			return 0, 0, err
		}
	}
	if rank < size-1 {
		// The next rank may begin inside the line that this one began after.
		if to, err = s.lineEnd(bytesOf(rank + 1)); err != nil {
			return 0, 0, err
		}
	}
	return from, to, nil
}

// quoteScanner walks over text and knows whether it is inside quotes.
type quoteScanner struct {
	r      *bufio.Reader
	pos    int64
	quoted bool
	last   int64 // the line end found before, 0 none
}

// lineEnd returns the offset after the first line end at or after at, or the end.
// Calls must not go back.
func (s *quoteScanner) lineEnd(at int64) (int64, error) {
	if at < s.last { // the line found before spans this cut too
		return s.last, nil
	}
	for {
		if _, err := s.r.Peek(1); err == io.EOF {
			return s.pos, nil
		} else if err != nil {
			return 0, err
		}
		buf, _ := s.r.Peek(s.r.Buffered())
		n, found := s.step(buf, at)
		s.pos += int64(n)
		if _, err := s.r.Discard(n); err != nil {
			return 0, err
		}
		if found {
			s.last = s.pos
			return s.pos, nil
		}
	}
}

// step consumes bytes of buf up to a line end at or after at.
func (s *quoteScanner) step(buf []byte, at int64) (n int, found bool) {
	if skip := at - s.pos; skip > 0 {
		n = int(min(skip, int64(len(buf))))
		s.flip(buf[:n])
		return n, false
	}
	for n < len(buf) {
		end := bytes.IndexByte(buf[n:], '\n')
		if end < 0 {
			break
		}
		s.flip(buf[n : n+end])
		n += end + 1
		if !s.quoted {
			return n, true
		}
	}
	s.flip(buf[n:])
	return len(buf), false
}

func (s *quoteScanner) flip(p []byte) {
	if bytes.Count(p, []byte{'"'})%2 == 1 {
		s.quoted = !s.quoted
	}
}

// badLine tells an error of the records read from offset on by its line in the file.
func (src *csvSource) badLine(err error, from int64) error {
	var pe *csv.ParseError
	var ve *valueError
	switch {
	case err == io.EOF:
		return errors.New("no header line")
	case errors.As(err, &pe):
		return fmt.Errorf("line %d: %w", src.linesBefore(from)+pe.Line, pe.Err)
	case errors.As(err, &ve):
		return fmt.Errorf("line %d: %w", src.linesBefore(from)+ve.line, err)
	}
	return err
}

// linesBefore counts the line ends before offset. It only serves error texts, so
// a failing read just ends it.
func (src *csvSource) linesBefore(offset int64) int {
	r := io.NewSectionReader(src.file, 0, offset)
	buf := make([]byte, csvBuffer)
	lines := 0
	for {
		n, err := r.Read(buf)
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if err != nil {
			return lines
		}
	}
}

// rowBuilder turns records into a batch of the chosen columns.
type rowBuilder struct {
	builder *array.RecordBuilder
	fields  []int // position in the record of each column
	parse   []parser
	names   []string
}

func newRowBuilder(schema *arrow.Schema, cols []int) *rowBuilder {
	picked := project(schema, cols)
	b := &rowBuilder{builder: array.NewRecordBuilder(memory.DefaultAllocator, picked), fields: cols}
	for i, f := range picked.Fields() {
		b.parse = append(b.parse, parserOf(f.Type, b.builder.Field(i)))
		b.names = append(b.names, f.Name)
	}
	return b
}

// valueError is a field that is not of its column's type.
type valueError struct {
	line   int // from 1, within the records read
	column string
	value  string
	typ    arrow.DataType
}

func (e *valueError) Error() string {
	return fmt.Sprintf("column %q: %q is not %s, the type of the column's first values", e.column, e.value, e.typ)
}

// fill appends up to most records; done at the end of the range.
func (b *rowBuilder) fill(r *csv.Reader, most int64) (done bool, err error) {
	for range most {
		rec, err := r.Read()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		for i, parse := range b.parse {
			if value := rec[b.fields[i]]; !parse(value) {
				line, _ := r.FieldPos(b.fields[i])
				return false, &valueError{line, b.names[i], value, b.builder.Field(i).Type()}
			}
		}
	}
	return false, nil
}

func (b *rowBuilder) flush() arrow.RecordBatch { return b.builder.NewRecordBatch() }

func (b *rowBuilder) release() { b.builder.Release() }
