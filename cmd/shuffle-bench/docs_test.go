package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	console = regexp.MustCompile("(?s)```console\n(.*?)```")
	// varying is what differs from run to run or between machines: times and
	// rates, the version, names of hosts, the rank that was slowest.
	varying = regexp.MustCompile(`[\d.]+ (ms|GiB|%)|\d+\.\d+|\([0-9a-f]{7,}\)|\(unknown\)|slowest rank \d \(\S+\)|\[rank \d \S+\]`)
	blanks  = regexp.MustCompile(` +`)
)

// TestDocumentedOutput runs the commands that the documents show, and compares
// what they print with what is shown, up to what varies.
func TestDocumentedOutput(t *testing.T) {
	flightsFile(t)
	shown := 0
	for _, name := range []string{root("README.md"), root("docs", "bench.md")} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range console.FindAllStringSubmatch(string(text), -1) {
			for _, sample := range strings.Split("\n"+block[1], "\n$ ")[1:] {
				shown++
				line, want, _ := strings.Cut(sample, "\n")
				t.Run(filepath.Base(name)+" "+line, func(t *testing.T) {
					if got := documented(t, line); steady(got) != steady(want) {
						t.Errorf("it prints\n%s\nand not\n%s", got, want)
					}
				})
			}
		}
	}
	if shown == 0 {
		t.Error("no samples")
	}
}

// documented runs a line of a document in the root of the repository, with this
// test as the command.
func documented(t *testing.T, line string) string {
	t.Helper()
	self := command(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(line, "bin/shuffle-bench", `"$SELF"`, 1))
	cmd.Dir = root()
	cmd.Env = append(self.Env, "SELF="+self.Path, "PATH="+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(line, "echo $?") {
		t.Errorf("%v", err)
	}
	return string(out)
}

// steady replaces what varies.
func steady(text string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(varying.ReplaceAllString(text, "~"), " "))
}
