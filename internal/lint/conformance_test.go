package lint

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// behaviours are the row ids of docs/conformance.md: so many of each letter.
var behaviours = map[string]int{
	"C": 4, "M": 6, "P": 4, // communicator, messages, progress
	"S": 16, "G": 7, "R": 5, "A": 7, // shuffle, allgather, allreduce, all to all
	"B": 19, "O": 4, "T": 3, // memory, options, statistics and tools
	"X": 17, "L": 6, // streaming, launch
}

func TestConformance(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range checkConformance(string(text), loadRepository(t)) {
		t.Error(fault)
	}
}

var (
	conformanceRow = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|([^|]*)\|([^|]*)\|$`)
	testName       = regexp.MustCompile("^`([a-z/_-]+)\\.(Test\\w+|Fuzz\\w+|Example\\w*)(/[^`]+)?`$")
)

// checkConformance wants each row id once, each with a behaviour, and in the
// last column the names of tests that exist, or why there is none:
//
//	`shuffle.TestS1RoundTrip`, `comm.TestX/sub`
//	not yet: REASON
//	out of scope: REASON
//
// Tests and a reason, parted by a semicolon, say that a part is still missing.
func checkConformance(text string, tr *tree) (faults []string) {
	seen := make(map[string]int)
	tests := testNames(tr)
	for _, m := range conformanceRow.FindAllStringSubmatch(text, -1) {
		id, behaviour, proof := m[1], strings.TrimSpace(m[2]), strings.TrimSpace(m[3])
		seen[id]++
		if behaviour == "" || proof == "" {
			faults = append(faults, fmt.Sprintf("row %s: empty column", id))
		}
		for part := range strings.SplitSeq(proof, ";") {
			if reason(strings.TrimSpace(part)) {
				continue
			}
			for name := range strings.SplitSeq(part, ",") {
				n := testName.FindStringSubmatch(strings.TrimSpace(name))
				switch {
				case n == nil:
					faults = append(faults, fmt.Sprintf("row %s: %q is neither a test nor a reason", id, strings.TrimSpace(name)))
				case !tests[n[1]+"."+n[2]]:
					faults = append(faults, fmt.Sprintf("row %s: there is no test %s.%s", id, n[1], n[2]))
				}
			}
		}
	}
	for _, letter := range slices.Sorted(maps.Keys(behaviours)) {
		for i := range behaviours[letter] {
			id := fmt.Sprint(letter, i+1)
			if seen[id] != 1 {
				faults = append(faults, fmt.Sprintf("row %s stands there %d times", id, seen[id]))
			}
			delete(seen, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		faults = append(faults, fmt.Sprintf("row %s is not in the list", id))
	}
	return faults
}

// reason reports whether s says why there is no test.
func reason(s string) bool {
	for _, prefix := range []string{"not yet: ", "out of scope: "} {
		if r, ok := strings.CutPrefix(s, prefix); ok && r != "" {
			return true
		}
	}
	return false
}

// testNames returns the tests of the tree as package directory, dot, name.
func testNames(tr *tree) map[string]bool {
	names := make(map[string]bool)
	for _, f := range tr.goFiles() {
		if !f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[f.dir()+"."+fn.Name.Name] = true
			}
		}
	}
	return names
}

// TestConformanceCanFail shows each fault that the check knows.
func TestConformanceCanFail(t *testing.T) {
	tr := loadSample(t, sample{"comm/a_test.go", "package comm; func TestGood() {}"})
	var rows []string
	for _, letter := range slices.Sorted(maps.Keys(behaviours)) {
		for i := range behaviours[letter] {
			rows = append(rows, fmt.Sprintf("| %s%d | it works | not yet: later |", letter, i+1))
		}
	}
	tests := []struct{ name, last, want string }{
		{"reason", "| X17 | it works | out of scope: why |", ""},
		{"test", "| X17 | it works | `comm.TestGood` |", ""},
		{"tests and reason", "| X17 | it works | `comm.TestGood/sub`, `comm.TestGood`; not yet: the rest |", ""},
		{"missing row", "", "row X17 stands there 0 times"},
		{"twice", "| X16 | it works | not yet: later |", "row X16 stands there 2 times"},
		{"unknown row", "| X99 | it works | not yet: later |", "row X99 is not in the list"},
		{"no behaviour", "| X17 |  | not yet: later |", "row X17: empty column"},
		{"no test", "| X17 | it works | `comm.TestBad` |", "there is no test comm.TestBad"},
		{"no reason", "| X17 | it works | not yet: |", "neither a test nor a reason"},
		{"no quotes", "| X17 | it works | comm.TestGood |", "neither a test nor a reason"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines := slices.Clone(rows[:len(rows)-1])
			faults := strings.Join(checkConformance(strings.Join(append(lines, tt.last), "\n"), tr), "\n")
			if tt.want == "" && faults != "" || !strings.Contains(faults, tt.want) {
				t.Errorf("faults %q, want %q", faults, tt.want)
			}
		})
	}
}
