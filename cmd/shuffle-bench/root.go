package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-engine/sluice/internal/bench/machine"
	"github.com/sluice-engine/sluice/internal/bench/report"
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "shuffle-bench",
		Short: "Measure the exchange of data between the ranks of a job",
		Long: `shuffle-bench exchanges random bytes or real tables between the ranks of a job,
checks what arrives, and reports times and rates.

Exit codes: 0 ok; 1 damaged input, out of memory, ranks that differ; 2 flags,
columns or limits that cannot work; 3 wrong data; 4 input, transport, launcher or
ranks are not what was asked for; 5 peer lost.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate(versionText() + "\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w. See %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newShuffle(a), newTable(a), newDoctor(a), newVersion(a))
	return root
}

// noArgs refuses arguments, which for the root are commands that do not exist.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() {
		return usage("unknown command %q. See %s --help", args[0], cmd.CommandPath())
	}
	return usage("unexpected argument %q. See %s --help", args[0], cmd.CommandPath())
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and platform",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, versionText())
			return err
		},
	}
}

func newDoctor(a *app) *cobra.Command {
	var jsonPath string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine and this build offer",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			facts := machine.Read(components())
			if jsonPath != "-" {
				if err := facts.WriteText(a.stdout); err != nil {
					return err
				}
			}
			return a.writeTo(jsonPath, func(w io.Writer) error { return report.EncodeJSON(w, facts) })
		},
	}
	cmd.Flags().StringVar(&jsonPath, "json", "", "also write the facts as JSON to `file`, - for standard output")
	return cmd
}

type transport struct{ name, reason string }

// transports are the values of --comm, with the reason where a driver is not part
// of the build.
var transports = []transport{
	{"inproc", ""},
	{"ucx", "this build has no UCX driver"},
	{"mpi", "this build has no MPI driver"},
}

func components() []machine.Component {
	var list []machine.Component
	for _, t := range transports {
		list = append(list, machine.Component{Name: t.name, Usable: t.reason == "", Reason: t.reason})
	}
	return list
}

// capturedEnv returns the variables that may explain a result. Names that sound
// like secrets are left out.
func (a *app) capturedEnv() map[string]string {
	picked := map[string]string{}
	for name, value := range a.env {
		if hasAnyPrefix(name, "UCX_", "OMPI_", "PMI_", "PMIX_", "SLURM_", "SLUICE_", "GOMAXPROCS", "GOMEMLIMIT", "GOGC") && !secret(name) {
			picked[name] = value
		}
	}
	return picked
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func secret(name string) bool {
	for _, word := range []string{"TOKEN", "SECRET", "PASS", "KEY", "CRED", "JWT", "AUTH"} {
		if strings.Contains(strings.ToUpper(name), word) {
			return true
		}
	}
	return false
}
