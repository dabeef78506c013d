// Command summary runs go test for the parts of `make test` and says at the
// end what ran and what was skipped.
//
//	summary run LOG PART ARGUMENTS…   runs go test with the arguments, prints what it prints, notes results in LOG
//	summary report LOG                prints the table; fails if a part failed or a feature was skipped that may not be
//
// LOG holds one record a line, as JSON; scripts/test.sh adds one for each part.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A record is one line of the log: the result of a part, of a package in a
// part, or a skipped test.
type record struct {
	Part    string  `json:"part"`
	Status  string  `json:"status,omitempty"`  // of a part: ok, or what went wrong
	Seconds float64 `json:"seconds,omitempty"` // of a part: what it took
	Limit   float64 `json:"limit,omitempty"`   // of a part: seconds it may take
	Package string  `json:"package,omitempty"` // import path
	Line    string  `json:"line,omitempty"`    // of a package: go test's line for it
	Passed  int     `json:"passed,omitempty"`  // tests and subtests
	Failed  int     `json:"failed,omitempty"`
	Test    string  `json:"test,omitempty"`   // of a skip
	Reason  string  `json:"reason,omitempty"` // of a skip: feature, colon, why
}

var errUsage = errors.New("usage: summary run LOG PART ARGUMENTS… | summary report LOG")

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) >= 3 && args[0] == "run":
		return run(args[1], args[2], args[3:])
	case len(args) == 2 && args[0] == "report":
		log, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }() // only read
		return report(log, os.Stdout)
	}
	return errUsage
}

// run runs go test and appends to the log what each package gave.
func run(path, part string, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	records, err := digest(events, os.Stdout, part)
	if err := errors.Join(err, cmd.Wait(), appendLog(path, records)); err != nil {
		return fmt.Errorf("%s: go test: %w", part, err)
	}
	return nil
}

func appendLog(path string, records []record) error {
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(log, records), log.Close())
}

func write(w io.Writer, records []record) error {
	enc := json.NewEncoder(w)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
