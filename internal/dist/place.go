package dist

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Place is where a process stands among those of its run, as its launcher says.
type Place struct {
	Rank, World int
	Local       int    // rank among the processes of this machine: which GPU is its
	Launcher    string // who says so, "" for a process that was started alone
	MPI         bool   // the launcher is MPI's: its library can connect the processes
	Address     string // host:port at which rank 0 is met over TCP; "" if the launcher names none
}

// launchers are the environments that say where a process stands, the first that is there wins. torchrun's names come first: they
// are also what rubicon launch sets, and what a user sets by hand.
var launchers = []struct {
	name, rank, world string
	local             []string
	mpi               bool
}{
	{"torchrun's environment", "RANK", "WORLD_SIZE", []string{"LOCAL_RANK"}, false},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", []string{"OMPI_COMM_WORLD_LOCAL_RANK"}, true},
	{"PMI", "PMI_RANK", "PMI_SIZE", []string{"MPI_LOCALRANKID", "PALS_LOCAL_RANKID"}, true},
	// Of a step, which srun starts; a batch script alone has SLURM_NTASKS too, but is one process.
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", []string{"SLURM_LOCALID"}, false},
}

// Find reads the environment. A process that no launcher started is rank 0 of 1.
func Find(getenv func(string) string) (Place, error) {
	for _, l := range launchers {
		if getenv(l.rank) == "" || getenv(l.world) == "" {
			continue
		}
		p := Place{Launcher: l.name, MPI: l.mpi}
		var err error
		if p.World, err = number(getenv, l.world, 1, 1<<16); err != nil {
			return Place{}, err
		}
		if p.Rank, err = number(getenv, l.rank, 0, p.World-1); err != nil {
			return Place{}, err
		}
		for _, name := range l.local {
			if getenv(name) == "" {
				continue
			}
			if p.Local, err = number(getenv, name, 0, p.World-1); err != nil {
				return Place{}, err
			}
		}
		if p.Address, err = address(getenv); err != nil {
			return Place{}, err
		}
		return p, nil
	}
	return Place{World: 1}, nil
}

func number(getenv func(string) string, name string, low, high int) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("environment variable %s is %q: the launcher has to set it to a number from %d to %d", name, getenv(name), low, high)
	}
	return n, nil
}

// address is where rank 0 is met: MASTER_ADDR and MASTER_PORT. torchrun itself listens there, unless told otherwise, so that
// rank 0 takes the next port.
func address(getenv func(string) string) (string, error) {
	host := getenv("MASTER_ADDR")
	if host == "" {
		return "", nil
	}
	port, err := number(getenv, "MASTER_PORT", 1, 1<<16-2)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(getenv("TORCHELASTIC_USE_AGENT_STORE"), "true") {
		port++
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
