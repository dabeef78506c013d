package leak

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestRun(t *testing.T) {
	var file *os.File
	stop := make(chan struct{})
	ended := make(chan struct{})
	for _, c := range []struct {
		name   string
		tests  func() int
		undo   func()
		code   int
		report string
	}{
		{"clean", func() int { return 0 }, func() {}, 0, ""},
		{"failed tests", func() int { return 3 }, func() {}, 3, ""},
		{"descriptor", func() int {
			file, _ = os.Open(os.DevNull)
			return 0
		}, func() { _ = file.Close() }, 1, "1 file descriptors left open: "},
		{"goroutine", func() int {
			go func() {
				defer close(ended)
				<-stop
			}()
			return 0
		}, func() { close(stop); <-ended }, 1, "leak_test.go"},
	} {
		var report strings.Builder
		code := run(c.tests, &report)
		c.undo()
		if code != c.code || !strings.Contains(report.String(), c.report) {
			t.Errorf("%s: status %d, report %q; want %d, %q", c.name, code, report.String(), c.code, c.report)
		}
	}
}
