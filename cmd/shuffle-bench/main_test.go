package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/internal/bench/jsonschema"
	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/leak"
)

// asCommand makes the test binary be the command, which the tests then run as a
// process of its own, with the same race detector and checks.
const asCommand = "SHUFFLE_BENCH_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		_ = os.Unsetenv(asCommand)
		os.Args[0] = "shuffle-bench"
		main()
	}
	leak.Main(m)
}

// command returns the command with arguments, in an environment without
// launchers.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = []string{asCommand + "=1", "GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + t.TempDir()}
	return cmd
}

// outcome is what a finished command left.
type outcome struct {
	code           int
	stdout, stderr string
}

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// mustRun runs the command, which has to succeed without a word of complaint.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	o := finish(t, command(t, args...))
	if o.code != 0 || o.stderr != "" {
		t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
	}
	return o.stdout
}

// root returns a path inside the repository.
func root(path ...string) string { return filepath.Join(append([]string{"..", ".."}, path...)...) }

// reportOf checks a report against its schema and returns it.
func reportOf(t *testing.T, text []byte) *report.Document {
	t.Helper()
	schema, err := os.ReadFile(root("docs", "json-schema", "sluice.bench-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range jsonschema.Validate(schema, text) {
		t.Error(err)
	}
	d := &report.Document{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(d); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return d
}

func readReport(t *testing.T, path string) *report.Document {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return reportOf(t, text)
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallTable is a CSV of 1,000 rows in 10 groups.
func smallTable(t *testing.T) string {
	t.Helper()
	return writeFile(t, "small.csv", "k,v\n"+strings.Repeat("a,1\nb,2\nc,3\nd,4\ne,5\nf,6\ng,7\nh,8\ni,9\nj,10\n", 100))
}
