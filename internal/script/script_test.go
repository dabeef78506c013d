package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var _ = flag.Bool("update", false, "rewrite the transcripts")

// counter is the state machine of the transcripts here: a sum with a history.
type counter struct{ sum int64 }

func (c *counter) do(cmd Cmd) string {
	switch cmd.Name {
	case "add":
		n, err := cmd.Int("n", 1)
		if err != nil {
			return err.Error()
		}
		c.sum += n
		return fmt.Sprintf("sum %d\n", c.sum)
	case "quiet":
		return ""
	case "echo":
		return strings.Join(cmd.Args, "\n")
	}
	return "unknown " + cmd.String()
}

func TestTranscript(t *testing.T) {
	Run(t, filepath.Join("testdata", "counter.txt"), new(counter).do)
}

// recorder is a testing.TB that notes failures instead of having them.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine's work through a panic that record catches.
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// record runs a transcript of the given text and returns the failures and the
// text of the file afterwards.
func record(t *testing.T, text string, do func(Cmd) string) (failures []string, after string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		Run(r, path, do)
	}()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return r.errors, string(got)
}

func TestFailures(t *testing.T) {
	setUpdate(t, "false")
	tests := []struct{ name, text, want string }{
		{"wrong output", "add\n----\nsum 2\n", ":1: output differs"},
		{"missing output", "add\n----\n", ":1: output differs"},
		{"unwanted output", "quiet\n----\nsum 1\n", ":1: output differs"},
		{"second block", "add\n----\nsum 1\n\nadd n=2\n----\nsum 4\n", ":5: output differs"},
		{"no separator", "add\n\nadd\n----\nsum 1\n", "line 1: block without ----"},
		{"blank output", "echo a b\n----\na\nb\n\necho a  b\n----\na\nb\n\nspace\n----\n", "blank line"},
		{"bad integer", "add n=x\n----\nsum 0\n", `n="x" is not an integer`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := new(counter)
			failures, after := record(t, tt.text, func(cmd Cmd) string {
				if cmd.Name == "space" {
					return "a\n\nb"
				}
				return c.do(cmd)
			})
			if len(failures) != 1 || !strings.Contains(failures[0], tt.want) {
				t.Errorf("failures %q, want one with %q", failures, tt.want)
			}
			if after != tt.text {
				t.Errorf("file changed to %q", after)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	setUpdate(t, "true")
	const (
		text = "# story\n\n\n# first\nadd\n  add n=4\n----\nold\nlines\n\nquiet\n----\nold\n"
		want = "# story\n\n# first\nadd\n  add n=4\n----\nsum 1\nsum 5\n\nquiet\n----\n"
	)
	failures, after := record(t, text, new(counter).do)
	if len(failures) != 0 {
		t.Errorf("failures %q", failures)
	}
	if after != want {
		t.Errorf("rewritten to\n%s\nwant\n%s", after, want)
	}
}

// setUpdate sets this test binary's update flag for the length of t.
func setUpdate(t *testing.T, value string) {
	t.Helper()
	f := flag.Lookup("update")
	old := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(old); err != nil {
			t.Error(err)
		}
	})
}

func TestCmd(t *testing.T) {
	c := Cmd{Line: 3, Name: "put", Args: []string{"7", "bytes=0x10", "to=2", "to=3"}}
	if got := c.String(); got != "put 7 bytes=0x10 to=2 to=3" {
		t.Errorf("String %q", got)
	}
	if v, ok := c.Value("to"); v != "2" || !ok {
		t.Errorf("Value(to) = %q, %v", v, ok)
	}
	if v, ok := c.Value("from"); v != "" || ok {
		t.Errorf("Value(from) = %q, %v", v, ok)
	}
	if n, err := c.Int("bytes", 0); n != 16 || err != nil {
		t.Errorf("Int(bytes) = %d, %v", n, err)
	}
	if n, err := c.Int("none", -1); n != -1 || err != nil {
		t.Errorf("Int(none) = %d, %v", n, err)
	}
}
