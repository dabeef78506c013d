package script

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Run feeds the commands of the transcript at path to do, one after another,
// and fails t for each block whose output differs from the file. When the test
// package has a flag "update" and it is set, Run rewrites the file instead.
func Run(t testing.TB, path string, do func(cmd Cmd) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("script: read transcript: %v", err)
	}
	blocks, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	update := updating()
	for i := range blocks {
		b := &blocks[i]
		got, err := b.run(do)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", path, err)
		case update:
			b.want = got
		case got != b.want:
			t.Errorf("%s:%d: output differs\n%s\n---- want\n%s---- got\n%s",
				path, b.line, strings.Join(b.source, "\n"), b.want, got)
		}
	}
	if !update {
		return
	}
	if next := format(blocks); next != string(text) {
		if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
			t.Fatalf("script: rewrite transcript: %v", err)
		}
	}
}

// run returns the joined output of the block's commands, every line ended by a
// newline. Output that the file format cannot hold is an error.
func (b *block) run(do func(cmd Cmd) string) (string, error) {
	var out strings.Builder
	for _, cmd := range b.cmds {
		got := strings.TrimSuffix(do(cmd), "\n")
		if got == "" {
			continue
		}
		for line := range strings.SplitSeq(got, "\n") {
			if blank(line) {
				return "", fmt.Errorf("script: line %d: %s: output has a blank line", cmd.Line, cmd.Name)
			}
			out.WriteString(line + "\n")
		}
	}
	return out.String(), nil
}

// updating reports whether the running test binary was asked to rewrite its
// transcripts, by a flag it registered itself.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}
