package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var readable = []Format{Parquet, Arrow, ArrowStream, CSV}

// Every format, number of ranks and unit size: the shares are all rows, in order,
// and nearly equal.
func TestSharesCoverTheInput(t *testing.T) {
	const rows = 480
	want := rowText(sample(0, rows))
	for _, format := range readable {
		for _, unit := range []int{1, 50, 109, rows} {
			if format == CSV && unit != rows {
				continue // lines are the units
			}
			path := writeSample(t, format, rows, unit)
			for _, size := range []int{1, 2, 3, 5, 8} {
				got, perRank := rowsOf(t, path, size, Config{BatchRows: 70}, nil)
				if format == ArrowStream && size > 1 {
					sortByID(got)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s, unit %d, %d ranks: %d rows differ from the %d written", format, unit, size, len(got), len(want))
				}
				slack := rows / size / 8 // borders of row groups, line lengths
				if format == Arrow || format == ArrowStream {
					slack = max(slack, unit)
				}
				if slices.Min(perRank) < rows/size-slack || slices.Max(perRank) > rows/size+slack+1 {
					t.Errorf("%s, unit %d, %d ranks read %v rows", format, unit, size, perRank)
				}
			}
		}
	}
}

func sortByID(rows []string) {
	slices.SortFunc(rows, func(a, b string) int {
		var i, j int
		_, _ = fmt.Sscanf(a, "id=\"%d", &i)
		_, _ = fmt.Sscanf(b, "id=\"%d", &j)
		return i - j
	})
}

func TestColumnsAreChosen(t *testing.T) {
	all := rowText(sample(0, 10))
	for _, format := range readable {
		path := writeSample(t, format, 10, 3)
		got, _ := rowsOf(t, path, 2, Config{}, []string{"ratio", "id"})
		if len(got) != len(all) || !slices.Contains(got, `ratio="1" id="8"`) {
			t.Errorf("%s: %q", format, got)
		}
		in, err := Open(path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range in.Share(0, 1).Batches(context.Background(), []string{"id", "nobody"}) {
			if !errors.Is(err, ErrNoColumn) || !strings.Contains(err.Error(), `"nobody"; there are id, name`) {
				t.Errorf("%s: missing column: %v", format, err)
			}
		}
		if in.Format() != format || in.Path() != path || in.Schema().NumFields() != 7 {
			t.Errorf("%s: %s %s %s", format, in.Path(), in.Format(), in.Schema())
		}
		_ = in.Close()
	}
}

func TestEmptyTables(t *testing.T) {
	for _, format := range readable {
		path := writeSample(t, format, 0, 1)
		if rows, _ := rowsOf(t, path, 3, Config{}, nil); len(rows) != 0 {
			t.Errorf("%s: %q", format, rows)
		}
	}
}

func TestBatchesStopWithTheContext(t *testing.T) {
	for _, format := range readable {
		in, err := Open(writeSample(t, format, 100, 50), Config{BatchRows: 10})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var last error
		n := 0
		for _, err := range in.Share(0, 1).Batches(ctx, nil) {
			last = err
			n++
			cancel()
		}
		if !errors.Is(last, context.Canceled) || n != 2 {
			t.Errorf("%s: after %d steps: %v", format, n, last)
		}
		for _, err := range in.Share(0, 1).Batches(context.Background(), nil) {
			if err != nil {
				t.Error(err)
			}
			break // leaving early is no error
		}
		_ = in.Close()
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing.parquet"), dir, "s3://bucket/key", "http://host/x"} {
		in, err := Open(path, Config{})
		if err == nil {
			_ = in.Close()
		}
		if !errors.Is(err, ErrUnreadable) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := func(format Format) string {
		content, err := os.ReadFile(writeSample(t, format, 3000, 1000))
		if err != nil {
			t.Fatal(err)
		}
		return string(content[:len(content)/2])
	}
	for name, c := range map[string]struct{ path, say string }{
		"empty":          {write("empty", ""), "the file is empty"},
		"garbage":        {write("garbage", "\x7fELF\x00\x01\x02"), "neither Parquet, Arrow IPC nor CSV"},
		"encrypted":      {write("pare", "PAREPARE"), "encrypted"},
		"parquet magic":  {write("magic", "PAR1"), ""},
		"parquet half":   {write("half.parquet", half(Parquet)), ""},
		"arrow half":     {write("half.arrow", half(Arrow)), ""},
		"stream half":    {write("half.stream", half(ArrowStream)), ""},
		"csv fields":     {write("fields.csv", "a,b\n1,2\n3\n"), "line 3: wrong number of fields"},
		"csv type":       {write("type.csv", "a,b\n"+strings.Repeat("1,2\n", 300_000)+"3,x\n"), `line 300002: column "b": "x" is not int64`},
		"csv quote":      {write("quote.csv", "a,b\n1,\"2\n"), "line 2: extraneous or missing"},
		"csv bare quote": {write("bare.csv", "a,b\n1,2\n1,x\"y\"\n"), "line 3: bare"},
		"csv twice":      {write("twice.csv", "a,a\n1,2\n"), "column 2 has no name of its own"},
		"csv nameless":   {write("nameless.csv", "a,\n1,2\n"), "column 2 has no name of its own"},
	} {
		err := readAll(c.path, 3)
		if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readAll reads every share and returns the first error.
func readAll(path string, size int) error {
	in, err := Open(path, Config{})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	for rank := range size {
		for _, err := range in.Share(rank, size).Batches(context.Background(), nil) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Bytes changed anywhere in a file give rows or an error, never a panic.
func TestFlippedBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, format := range []Format{Parquet, Arrow, ArrowStream} {
		content, err := os.ReadFile(writeSample(t, format, 500, 200))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "flipped")
		for range 400 {
			damaged := slices.Clone(content)
			for range 1 + rng.IntN(3) {
				damaged[rng.IntN(len(damaged))] ^= byte(1 + rng.IntN(255))
			}
			if err := os.WriteFile(path, damaged, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := readAll(path, 2); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("%s: %v", format, err)
			}
		}
	}
}
