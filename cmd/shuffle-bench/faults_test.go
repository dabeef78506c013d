package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Validation can fail: a binary in which one received chunk is damaged exits
// with 3 and counts what is wrong, whatever is done to the chunk.
func TestFaultsAreFound(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "shuffle-bench")
	if out, err := exec.Command("go", "build", "-tags", "faults", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	input := smallTable(t)
	for _, args := range []string{
		"shuffle -n 64KiB -r 2 -w 1", "shuffle -n 64 -p 50 --ranks 3 -r 1 -w 0", "shuffle --ranks 1 -n 5000 -p 1 -r 1 -w 0",
		"table --key k --agg count,sum(v) --input " + input, "table --key k,v --ranks 1 --input " + input,
		"table --key origin --agg count,sum(distance) --input " + flightsFile(t),
	} {
		for _, fault := range []string{"", "flip", "drop", "duplicate", "misroute"} {
			path := filepath.Join(t.TempDir(), "x.json")
			cmd := exec.CommandContext(t.Context(), binary, append(strings.Fields(args), "--json", path)...)
			cmd.Env = append(os.Environ(), "SLUICE_FAULTS="+fault)
			o := finish(t, cmd)
			d := readReport(t, path)
			if fault == "" {
				if o.code != 0 || d.Validation.Wrong != 0 {
					t.Errorf("%s: exit %d, %+v", args, o.code, d.Validation)
				}
				continue
			}
			if o.code != 3 || d.Validation.Wrong < 1 || !errorLine.MatchString(o.stderr) || len(d.Errors) != 1 || d.Errors[0].Exit != 3 {
				t.Errorf("%s, %s: exit %d, %+v, %s", args, fault, o.code, d.Validation, o.stderr)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "shuffle")
	cmd.Env = append(os.Environ(), "SLUICE_FAULTS=nonsense")
	if o := finish(t, cmd); o.code != 2 || !strings.Contains(o.stderr, "want flip, drop, duplicate or misroute") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
