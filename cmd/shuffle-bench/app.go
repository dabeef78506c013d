package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// version of the command line and of the reports it writes.
const version = "0.1.0"

// app is what all commands share.
type app struct {
	argv   []string
	env    map[string]string
	host   string
	stdout *output
	stderr io.Writer
	quiet  bool // another rank tells what all ranks find
}

func newApp(argv, environ []string, stdout, stderr io.Writer) *app {
	a := &app{argv: argv, env: map[string]string{}, stdout: &output{w: stdout}, stderr: stderr}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		a.env[name] = value
	}
	a.host, _ = os.Hostname() // only for texts
	if a.host == "" {
		a.host = "localhost"
	}
	return a
}

// finish prints the error, if any, on one line and returns the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	if err == nil && a.stdout.err != nil {
		err = fmt.Errorf("write to standard output: %w", a.stdout.err)
	}
	if err == nil {
		return 0
	}
	f := a.failure(ctx, err)
	if !a.quiet {
		_, _ = fmt.Fprintf(a.stderr, "[rank %d %s] %s\n", f.Rank, f.Host, f.Message)
	}
	return f.Exit
}

// output is standard output. It keeps the first error, since the callers in
// between drop it, and then writes nothing more. A closed pipe is no error: the
// reader has seen enough.
type output struct {
	w      io.Writer
	err    error
	closed bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.closed {
		return len(p), nil
	}
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.closed = true
		return len(p), nil
	}
	o.err = err
	return n, err
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ sig syscall.Signal }

func (e signalError) Error() string { return e.sig.String() }

// withSignals returns a context that SIGINT or SIGTERM ends. A second signal
// ends the process at once.
func withSignals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			cancel(signalError{s.(syscall.Signal)})
		case <-done:
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// commitText names the commit the binary was built from.
func commitText() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				return s.Value[:7]
			}
		}
	}
	return "unknown"
}

func versionText() string {
	return fmt.Sprintf("shuffle-bench %s (%s) %s %s/%s", version, commitText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
