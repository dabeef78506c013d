package lint

import (
	"os"
	"strings"
	"testing"
)

// golden compares got with the file at path, or rewrites that with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./internal/lint -update writes it)", err)
	}
	if diff := firstDiff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test ./internal/lint -update rewrites it):\n%s", path, diff)
	}
}

// firstDiff returns the first line in which two texts differ, or "".
func firstDiff(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "- " + w[i] + "\n+ " + g[i]
		}
	}
	if len(w) > len(g) {
		return "- " + w[len(g)]
	}
	return "+ " + g[len(w)]
}

// The part of .golangci.yaml that is written from the table of edges stands
// between these lines.
const (
	edgesBegin = "        # Written from internal/lint/edges_test.go by go test ./internal/lint -update.\n"
	edgesEnd   = "        # End of the written part.\n"
)

// TestDepguard keeps the linter's copy of the table of edges equal to it.
func TestDepguard(t *testing.T) {
	path := root + "/.golangci.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), edgesBegin)
	_, tail, ok2 := strings.Cut(rest, edgesEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: the lines around the table of edges are missing", path)
	}
	golden(t, path, head+edgesBegin+depguard()+edgesEnd+tail)
}
