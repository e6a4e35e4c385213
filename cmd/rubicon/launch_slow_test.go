//go:build slow && linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launch starts a run of three ranks, which is started again up to restarts times when one dies.
func launch(bin, config, run string, restarts int, overrides ...string) *exec.Cmd {
	args := []string{"launch", "--nproc", "3", "--max-restarts", strconv.Itoa(restarts), "--", "train", "-c", config, "--resume=auto", "output_dir=" + run}
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
	if out, err := launch(bin, config, calm, 0).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(3, 4))
	run := begin(t, launch(bin, config, killed, 30))
	var ranks []int
	for kill := range 20 {
		before := ranks
		run.began = time.Now() // until has patience with one round, not with all
		run.until(t, func() bool {
			ranks = ranksOf(run.cmd.Process)
			known := func(pid int) bool { return slices.Contains(before, pid) }
			return len(ranks) == 3 && !slices.ContainsFunc(ranks, known) && lastStep(killed) >= kill
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
		run := begin(t, launch(bin, config, folder, 0, "checkpoint.save_steps=0"))
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

// A rank that hangs is named by the others after dist.timeout, and the launcher ends it.
func TestStoppedRankIsNamed(t *testing.T) {
	bin, config, dir := killSetup(t)
	run := begin(t, launch(bin, config, filepath.Join(dir, "run"), 0, "dist.timeout=2", "max_steps=5000", "checkpoint.save_steps=0"))
	run.until(t, func() bool { return exists(dir, "run", "completions", "step_1.jsonl") })
	stopped := 0
	run.until(t, func() bool {
		for _, pid := range ranksOf(run.cmd.Process) {
			env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if strings.Contains("\x00"+string(env), "\x00RANK=1\x00") && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped = pid
			}
		}
		return stopped != 0
	})
	defer syscall.Kill(stopped, syscall.SIGKILL) // should the launcher not have done so
	if err := <-run.done; err == nil {
		t.Error("the run has ended well")
	}
	if want := "rank 1: it did not answer for 2s (dist.timeout)"; !strings.Contains(run.log.String(), want) {
		t.Errorf("nobody says %q:\n%s", want, run.log.String())
	}
	if left := ranksOf(run.cmd.Process); len(left) > 0 {
		t.Errorf("ranks %v live on", left)
	}
}

// If the launcher itself is killed its ranks do not live on.
func TestRanksOutliveNoLauncher(t *testing.T) {
	bin, config, dir := killSetup(t)
	run := begin(t, launch(bin, config, filepath.Join(dir, "run"), 0, "max_steps=5000"))
	var ranks []int
	run.until(t, func() bool {
		ranks = ranksOf(run.cmd.Process)
		return len(ranks) == 3 && exists(dir, "run", "completions", "step_1.jsonl")
	})
	if err := run.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.done // what rank 0 prints is closed
	deadline := time.Now().Add(time.Minute)
	for _, pid := range ranks {
		for lives(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d of a rank lives on", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// lives reports whether a process is there, and not only what its parent has not taken note of.
func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}
