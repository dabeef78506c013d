// Command shuffle-bench measures sluice: random bytes or real tables are
// exchanged between the ranks of a job, checked, and reported as text, JSON, CSV
// or Markdown. Its flags, exit codes and the fields of its reports are a contract
// that scripts rely on.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
)

// commit is what the binary was built from; the linker sets it.
var commit string

func main() {
	// A write to a closed pipe is to be an error, not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args, os.Environ(), os.Stdout, os.Stderr))
}

func run(argv, environ []string, stdout, stderr io.Writer) int {
	a := newApp(argv, environ, stdout, stderr)
	ctx, stop := withSignals()
	defer stop()
	cmd := newRoot(a)
	cmd.SetArgs(argv[1:])
	err := cmd.ExecuteContext(ctx)
	return a.finish(ctx, err)
}
