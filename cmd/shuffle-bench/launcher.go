package main

import (
	"fmt"
	"strconv"
)

// launched is what a launcher says about this process.
type launched struct {
	by         string // empty: no launcher
	rank, size int
}

// launchers in the order in which they nest: an inner one first. A variable of a
// job script that runs outside a step does not count.
var launchers = []struct{ by, rank, size, needs string }{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""},
	{"PMI", "PMI_RANK", "PMI_SIZE", ""},
	{"PMIx", "PMIX_RANK", "PMIX_SIZE", ""},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"},
}

// launcher reads the variables of the innermost launcher. Those that cannot be
// are an error, as are two launchers of MPI that disagree.
func (a *app) launcher() (launched, error) {
	var found launched
	for _, l := range launchers {
		sizeText := a.env[l.size]
		if sizeText == "" || l.needs != "" && a.env[l.needs] == "" {
			continue
		}
		size, err := strconv.Atoi(sizeText)
		if err != nil || size < 1 {
			return launched{}, missing("read launcher: %s=%q is no number of ranks. Unset it, or start with mpirun or srun", l.size, sizeText)
		}
		rank := 0
		if text := a.env[l.rank]; text != "" {
			if rank, err = strconv.Atoi(text); err != nil || rank < 0 || rank >= size {
				return launched{}, missing("read launcher: %s=%q is no rank of %d. Unset it, or start with mpirun or srun", l.rank, text, size)
			}
		}
		switch {
		case found.by == "":
			found = launched{l.by, rank, size}
		case l.by == "Slurm": // the outer launcher
		case found.size != size || found.rank != rank:
			return launched{}, missing("read launcher: %s says rank %d of %d, %s says rank %d of %d. Unset the variables of one", found.by, found.rank, found.size, l.by, rank, size)
		}
	}
	return found, nil
}

// String names the launcher for errors.
func (l launched) String() string {
	if l.by == "" {
		return "no launcher"
	}
	return fmt.Sprintf("launcher %s", l.by)
}
