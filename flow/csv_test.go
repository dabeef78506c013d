package flow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCSVTypes(t *testing.T) {
	for content, want := range map[string]string{
		"a\n1\n-2\n\n3\n":                      "int64",
		"a\n1\n2.5\n1e9\nNaN\n":                "float64",
		"a\n9223372036854775808\n":             "utf8", // no float64 holds it
		"a\n00501\n":                           "utf8", // leading zeros would be lost
		"a\n+1\n":                              "utf8",
		"a\n0\n-0\n0.5\n":                      "float64",
		"a\n0x10\n":                            "utf8",
		"a\ntrue\nfalse\n":                     "bool",
		"a\ntrue\nTRUE\n":                      "utf8",
		"a\n2020-02-29\n":                      "date32",
		"a\n2020-02-30\n":                      "utf8",
		"a\n2020-01-01 00:00:00.5\n":           "timestamp[us]",
		"a\n2020-01-01T00:00:00+01:00\n":       "timestamp[us, tz=UTC]",
		"a\n2020-01-01T00:00:00.000000001\n":   "utf8",
		"a\n2020-01-01\n2020-01-01 00:00:00\n": "utf8",
		"a\n1\nx\n":                            "utf8",
		"a\n\"\"\n\"\"\n":                      "utf8",
		"a\n":                                  "utf8",
		"\xef\xbb\xbfa\r\n1\r\n":               "int64",
	} {
		in, err := Open(writeFile(t, content), Config{})
		if err != nil {
			t.Errorf("%q: %v", content, err)
			continue
		}
		if f := in.Schema().Field(0); f.Type.String() != want || f.Name != "a" {
			t.Errorf("%q: column %q is %s, want %s", content, f.Name, f.Type, want)
		}
		_ = in.Close()
	}
}

func TestCSVValues(t *testing.T) {
	rows, _ := rowsOf(t, writeFile(t, "i,s,t\n1,x,2020-01-01T00:00:00+01:00\n,,\n\n3,\"a \"\"b\"\"\nc\",2020-06-01T12:00:00.25Z\n"), 1, Config{}, nil)
	want := []string{`i="1" s="x" t="2019-12-31T23:00:00Z"`, `i="" s="" t=""`, `i="3" s="a \"b\"\nc" t="2020-06-01T12:00:00.25Z"`}
	if !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
}

// Random text with quotes and line breaks, more ranks than lines too: nothing is
// lost, doubled or split.
func TestCSVCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	parts := []string{"x", "yy", ",", "\n", "\"", "é"}
	for round := range 100 {
		var lines []string
		var content strings.Builder
		content.WriteString("n,s\n")
		for i := range rng.IntN(12) {
			var value strings.Builder
			for range rng.IntN(6) {
				value.WriteString(parts[rng.IntN(len(parts))])
			}
			fmt.Fprintf(&content, "%d,\"%s\"\n", i, strings.ReplaceAll(value.String(), `"`, `""`))
			lines = append(lines, fmt.Sprintf("n=%q s=%q", fmt.Sprint(i), value.String()))
		}
		text := content.String()
		if round%2 == 1 {
			text = strings.TrimSuffix(text, "\n")
		}
		path := writeFile(t, text)
		for _, size := range []int{1, 2, 3, 5, 8, 40} {
			if got, _ := rowsOf(t, path, size, Config{}, nil); !slices.Equal(got, lines) {
				t.Fatalf("%q over %d ranks: %q", text, size, got)
			}
		}
	}
}

// The line of an error counts from the start of the file on every rank.
func TestCSVErrorLine(t *testing.T) {
	content := "a,b\n" + strings.Repeat("1,\"x\ny\"\n", 200_000) + "q,z\n" + strings.Repeat("1,z\n", 1000)
	in, err := Open(writeFile(t, content), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for _, size := range []int{1, 3, 8} {
		var errs []string
		for rank := range size {
			for _, err := range in.Share(rank, size).Batches(context.Background(), []string{"a"}) {
				if err != nil {
					errs = append(errs, err.Error())
				}
			}
		}
		if len(errs) != 1 || !strings.HasSuffix(errs[0], `damaged: line 400002: column "a": "q" is not int64, the type of the column's first values`) {
			t.Errorf("%d ranks: %q", size, errs)
		}
	}
}
