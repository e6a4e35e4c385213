//go:build slow && linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launch starts a run of three ranks, which is started again when one dies.
func launch(bin, config, run string, overrides ...string) *exec.Cmd {
	args := []string{"launch", "--nproc", "3", "--max-restarts", "30", "--", "train", "-c", config, "--resume=auto", "output_dir=" + run}
	return exec.Command(bin, append(args, overrides...)...)
}

// ranksOf are the processes that a launcher has started and that still live.
func ranksOf(launcher *os.Process) (pids []int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", launcher.Pid, launcher.Pid))
	if err != nil {
		return nil
	}
	others, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", launcher.Pid)) // any thread may have started them
	for _, name := range others {
		more, _ := os.ReadFile(name)
		b = append(append(b, ' '), more...)
	}
	seen := map[int]bool{}
	for _, field := range strings.Fields(string(b)) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err == nil && !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestKilledRanksEndAsTheUndisturbedOnes kills twenty times one of the three ranks of a run, at any moment, also rank 0 while
// it saves; the launcher starts all again, and weights, samples and metrics must end as those of a run that nobody disturbed,
// bit for bit.
func TestKilledRanksEndAsTheUndisturbedOnes(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm, killed := filepath.Join(dir, "calm"), filepath.Join(dir, "killed")
	if out, err := launch(bin, config, calm).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(3, 4))
	run := begin(t, launch(bin, config, killed))
	for kill := range 20 {
		var ranks []int
		run.until(t, func() bool {
			ranks = ranksOf(run.cmd.Process)
			return len(ranks) == 3 && lastStep(killed) >= kill
		})
		if kill%4 == 3 {
			run.until(t, func() bool { return run.saving(killed) })
		} else {
			time.Sleep(time.Duration(random.IntN(int(200 * time.Millisecond))))
		}
		victim := ranks[random.IntN(3)]
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		run.until(t, func() bool { return len(ranksOf(run.cmd.Process)) != 3 || ranksOf(run.cmd.Process)[0] != ranks[0] })
	}
	if err := <-run.done; err != nil {
		t.Fatalf("after the kills: %v\n%s", err, run.log.String())
	}
	if n := strings.Count(run.log.String(), "starting all again"); n < 20 {
		t.Errorf("the ranks were started again %d times", n)
	}
	compareRuns(t, calm, killed)
}

// An interrupt of the launcher ends all ranks after their step, with a checkpoint, from which the run goes on; so does a
// termination, as Slurm and Kubernetes send it.
func TestInterruptedRanksSave(t *testing.T) {
	bin, config, dir := killSetup(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		folder := filepath.Join(dir, s.String())
		run := begin(t, launch(bin, config, folder, "checkpoint.save_steps=0"))
		run.until(t, func() bool {
			b, _ := os.ReadFile(filepath.Join(folder, "metrics.jsonl"))
			return strings.Contains(string(b), `"step":3`)
		})
		if err := run.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		err := <-run.done
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
			t.Errorf("%v: the launcher ended with %v, want code %d\n%s", s, err, exitInterrupted, run.log.String())
		}
		if step := lastStep(folder); step < 3 || step >= 30 {
			t.Errorf("%v: the last checkpoint is of step %d", s, step)
		}
		if left := ranksOf(run.cmd.Process); len(left) > 0 {
			t.Errorf("%v: ranks %v live on", s, left)
		}
	}
}
