//go:build linux && (amd64 || arm64) && !nocuda && !nodl

package dist_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/dist"
)

// mpiRun is the environment variable that says which part a process of TestMPI has.
const mpiRun = "RUBICON_TEST_MPI"

// mpiLaunchers are the commands that start four processes, of the MPI implementations that are installed.
func mpiLaunchers(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for name, c := range map[string][]string{
		"Open MPI": {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "4"}, // Debian's names
		"MPICH":    {"mpiexec.hydra", "-n", "4"},
	} {
		if _, err := exec.LookPath(c[0]); err == nil {
			found[name] = c
		}
	}
	if len(found) == 0 {
		t.Skip("no MPI is installed: apt-get install openmpi-bin (or mpich)")
	}
	return found
}

// TestMPI runs this test's program as four ranks under each MPI that is installed: the collectives, and that what goes wrong at
// one rank ends all, with its name.
func TestMPI(t *testing.T) {
	if os.Getenv(mpiRun) != "" {
		t.Skip("this is a rank itself")
	}
	for launcher, command := range mpiLaunchers(t) {
		for part, want := range map[string]string{
			"collectives": "",
			"fails":       "because of rank 2: it has ended: its disk is full",
			"hangs":       "because of rank 2: it did not answer for 2s (dist.timeout)",
			"dies":        "",
		} {
			t.Run(launcher+" "+part, func(t *testing.T) {
				if part == "hangs" {
					t.Parallel() // it only waits
				}
				c := exec.CommandContext(t.Context(), command[0], append(command[1:], os.Args[0], "-test.run=^TestMPIRank$")...)
				c.Env = append(os.Environ(), mpiRun+"="+part)
				out, err := c.CombinedOutput()
				if (err == nil) != (part == "collectives") {
					t.Errorf("the launcher says %v", err)
				}
				if !strings.Contains(string(out), want) {
					t.Errorf("the output has no %q", want)
				}
				if t.Failed() {
					t.Logf("%s", out)
				}
			})
		}
	}
}

// TestMPIRank is one rank of TestMPI.
func TestMPIRank(t *testing.T) {
	part := os.Getenv(mpiRun)
	if part == "" {
		t.Skip("TestMPI starts this")
	}
	place, err := dist.Find(os.Getenv)
	if err != nil || place.World != 4 || !place.MPI {
		t.Fatalf("%+v, %v: want four ranks of an MPI launcher", place, err)
	}
	link, err := dist.MPI(place, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	g := dist.NewGroup(link, time.Minute)
	err = collectives(t.Context(), g)
	if err == nil && !recovers() {
		err = errors.New("the library has taken Go's signals")
	}
	if part == "hangs" {
		g = dist.NewGroup(link, 2*time.Second)
	}
	if err == nil && part != "collectives" {
		if g.Rank() == 2 {
			switch part {
			case "fails":
				err = errors.New("its disk is full")
			case "hangs":
				time.Sleep(time.Minute) // until the others end it
			case "dies":
				if p, err := os.FindProcess(os.Getpid()); err == nil {
					p.Kill()
				}
			}
		} else {
			_, err = dist.Gather(t.Context(), g, "samples", 1)
			if err == nil {
				err = errors.New("a rank that is not there has answered")
			}
		}
	}
	if e := errors.Join(err, g.Close(err)); e != nil {
		t.Fatal(e)
	}
}

// recovers reports whether Go still sees a fault of its own, now that MPI is there.
func recovers() (ok bool) {
	defer func() { ok = strings.Contains(fmt.Sprint(recover()), "nil pointer") }()
	var p *dist.Place
	return p.Rank > 0
}
