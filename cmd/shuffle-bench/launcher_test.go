package main

import (
	"strings"
	"testing"
)

func TestLauncher(t *testing.T) {
	for env, want := range map[string]launched{
		"":                                  {},
		"OMPI_COMM_WORLD_SIZE=1":            {"Open MPI", 0, 1},
		"PMI_SIZE=4 PMI_RANK=3":             {"PMI", 3, 4},
		"SLURM_NTASKS=8 SLURM_PROCID=2":     {}, // a job script, not a step of it
		"SLURM_NTASKS=8 SLURM_STEP_ID=0":    {"Slurm", 0, 8},
		"PMIX_SIZE=2 PMIX_RANK=1 PMI_SIZE=": {"PMIx", 1, 2},
		"SLURM_NTASKS=2 SLURM_STEP_ID=0 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=5": {"Open MPI", 5, 8}, // mpirun inside srun
		"PMI_SIZE=2 PMI_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1":          {"Open MPI", 1, 2},
	} {
		a := newApp([]string{"x"}, strings.Fields(env), nil, nil)
		if got, err := a.launcher(); err != nil || got != want {
			t.Errorf("%q: %+v, %v", env, got, err)
		}
	}
	for _, env := range []string{"PMI_SIZE=0", "PMI_SIZE=x", "PMI_SIZE=2 PMI_RANK=2", "PMI_SIZE=2 PMI_RANK=-1",
		"PMI_SIZE=2 OMPI_COMM_WORLD_SIZE=3", "PMI_SIZE=2 PMI_RANK=1 OMPI_COMM_WORLD_SIZE=2"} {
		a := newApp([]string{"x"}, strings.Fields(env), nil, nil)
		if got, err := a.launcher(); err == nil || classifyCode(err) != exitMissing {
			t.Errorf("%q: %+v, %v", env, got, err)
		}
	}
}

func classifyCode(err error) int {
	code, _ := classify(err)
	return code
}
