// Package leak makes a test binary fail when it leaves something behind:
// goroutines, file descriptors, or whatever a caller can count. It imports no
// other package of this module, so that every one of them can use it.
package leak

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and exits. Write it as
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// If all tests passed but goroutines or file descriptors are left over, it says
// which and exits with status 1.
func Main(m *testing.M) {
	os.Exit(run(m.Run, os.Stderr))
}

func run(tests func() int, report io.Writer) int {
	warmPoller()
	before, err := descriptors()
	if err != nil {
		_, _ = fmt.Fprintf(report, "leak: %v\n", err)
		return 1
	}
	if code := tests(); code != 0 {
		return code
	}
	// Goroutines first: goleak gives those that are on their way out the time
	// to end, and with them go the descriptors they close.
	if err := goleak.Find(); err != nil {
		_, _ = fmt.Fprintf(report, "leak: after the tests: %v\n", err)
		return 1
	}
	after, err := descriptors()
	if err != nil {
		_, _ = fmt.Fprintf(report, "leak: %v\n", err)
		return 1
	}
	left := slices.DeleteFunc(after, func(d string) bool { return slices.Contains(before, d) })
	if len(left) > 0 {
		_, _ = fmt.Fprintf(report, "leak: after the tests: %d file descriptors left open: %s\n", len(left), strings.Join(left, ", "))
		return 1
	}
	return 0
}

// warmPoller makes the runtime open the descriptors of its network poller,
// which it keeps for good, before they are counted.
func warmPoller() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.Close()
		_ = w.Close()
	}
}

// descriptors returns "number target" of each open descriptor.
func descriptors() ([]string, error) {
	const dir = "/proc/self/fd"
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list descriptors: %w", err)
	}
	var open []string
	for _, n := range names {
		// The one that read the directory is closed by now: no target.
		target, err := os.Readlink(filepath.Join(dir, n.Name()))
		if err == nil && !isProfile(target) {
			open = append(open, n.Name()+" "+target)
		}
	}
	return open, nil
}

// isProfile tells whether target is the CPU profile of this test run, which the
// testing package never closes.
func isProfile(target string) bool {
	profile := flag.Lookup("test.cpuprofile")
	return profile != nil && profile.Value.String() != "" &&
		filepath.Base(profile.Value.String()) == filepath.Base(target)
}

// Check fails t when count, asked at the end of t, is not what it is now. name
// says what is counted, in the plural.
func Check(t testing.TB, name string, count func() int64) {
	t.Helper()
	before := count()
	t.Cleanup(func() {
		if after := count(); after != before {
			t.Errorf("leak: %d %s at the end of the test, %d at its start", after, name, before)
		}
	})
}
