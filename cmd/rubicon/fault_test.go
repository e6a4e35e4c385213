//go:build slow && linux

package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/golden"
)

// kills is how often TestKilledAMARIS kills its run: RUBICON_TEST_KILLS, else ten times.
func kills() int {
	n, err := strconv.Atoi(os.Getenv("RUBICON_TEST_KILLS"))
	if err != nil {
		return 10
	}
	return n
}

// TestKilledAMARIS kills a run with a local judge, whose rubric AMARIS improves beside it, at random moments; it ends as the one that
// nobody disturbed, rubric and memory included.
func TestKilledAMARIS(t *testing.T) {
	bin, _, dir := killSetup(t)
	config := golden.Path("..", "..", "..", "configs", "quickstart-amaris.yaml")
	steps := 8 + kills()/4
	small := []string{"max_steps=" + strconv.Itoa(steps), "per_device_train_batch_size=16", "reward.options.update_interval=2", "eval.max_rows=4",
		"eval_steps=5", "save_steps=1", "logging_steps=1", "save_total_limit=2", "track.progress=plain"}
	calm, killed := filepath.Join(dir, "calm"), filepath.Join(dir, "killed")
	if out, err := start(bin, config, calm, small...).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(3, 4))
	done := 0
	for kill := range kills() {
		run := begin(t, start(bin, config, killed, small...))
		// At least every fourth time the run gets on by a step, or it would never end.
		if goal := lastStep(killed) + 1; kill%4 == 3 {
			run.until(t, func() bool { return lastStep(killed) >= min(goal, steps-1) })
		}
		select {
		case err := <-run.done:
			if err != nil {
				t.Fatalf("run %d: %v\n%s", kill+1, err, run.log.String())
			}
			t.Logf("the run was through after %d kills", done)
			compareAMARIS(t, bin, calm, killed)
			return
		case <-time.After(time.Duration(random.Int64N(int64(700 * time.Millisecond)))):
		}
		run.cmd.Process.Kill()
		<-run.done
		done++
	}
	if out, err := start(bin, config, killed, small...).CombinedOutput(); err != nil {
		t.Fatalf("after the kills: %v\n%s", err, out)
	}
	t.Logf("%d kills", done)
	compareAMARIS(t, bin, calm, killed)
}

// compareAMARIS compares two runs, the log of their rubrics and their memory.
func compareAMARIS(t *testing.T, bin, calm, killed string) {
	t.Helper()
	compareRuns(t, calm, killed)
	want, err1 := os.ReadFile(filepath.Join(calm, "rubrics", "log.jsonl"))
	got, err2 := os.ReadFile(filepath.Join(killed, "rubrics", "log.jsonl"))
	if err := errors.Join(err1, err2); err != nil || string(got) != string(want) {
		t.Errorf("the log of rubrics differs from the undisturbed run's, %v", err)
	}
	export := func(run string) string {
		out, err := exec.Command(bin, "memory", "export", run).Output()
		if err != nil || len(out) == 0 {
			t.Errorf("memory export %s: %d bytes, %v", run, len(out), err)
		}
		return string(out)
	}
	if export(calm) != export(killed) {
		t.Error("the memory differs from the undisturbed run's")
	}
}

// TestTerminatedRunEndsAsTheUndisturbedOne sends SIGTERM, as schedulers do, at random moments: a run saves what it has finished and exits
// with 130, and the resumed one ends as the undisturbed.
func TestTerminatedRunEndsAsTheUndisturbedOne(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm, stopped := filepath.Join(dir, "calm"), filepath.Join(dir, "stopped")
	began := time.Now()
	if out, err := start(bin, config, calm, "save_steps=0").CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	whole := time.Since(began)
	random := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		run := begin(t, start(bin, config, stopped, "save_steps=0"))
		before := lastStep(stopped)
		run.until(t, func() bool { return exists(stopped, ".lock") })
		time.Sleep(time.Duration(random.Float64() * float64(whole) / 4))
		run.cmd.Process.Signal(syscall.SIGTERM)
		err := <-run.done
		if err == nil {
			break // it was through
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 130 {
			if lastStep(stopped) < before {
				t.Fatalf("a checkpoint was lost: step %d, then %d", before, lastStep(stopped))
			}
			continue
		}
		if !endedBy(err, syscall.SIGTERM) { // before the run has begun a signal ends the process as any other
			t.Fatalf("%v, want exit code 130\n%s", err, run.log.String())
		}
	}
	if out, err := start(bin, config, stopped, "save_steps=0").CombinedOutput(); err != nil {
		t.Fatalf("resumed run: %v\n%s", err, out)
	}
	compareRuns(t, calm, stopped)
}

// volume mounts a file system of so many bytes in memory; tests that cannot are skipped.
func volume(t *testing.T, size string) string {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDisk lets the disk fill up again and again: the run says so, keeps what it has saved, and with more room goes on to the
// undisturbed end.
func TestFullDisk(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm := filepath.Join(dir, "calm")
	if out, err := start(bin, config, calm).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	disk := volume(t, "64k")
	run := filepath.Join(disk, "run")
	full := 0
	for size := 64; ; size += 256 {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size="+strconv.Itoa(size)+"k"); err != nil {
			t.Fatal(err)
		}
		before := lastStep(run)
		out, err := start(bin, config, run).CombinedOutput()
		if err == nil {
			break
		}
		if full++; full > 100 || !strings.Contains(string(out), "no space left on device") || !strings.Contains(string(out), "make room") {
			t.Fatalf("with %d kB: %v\n%s", size, err, out)
		}
		if lastStep(run) < before {
			t.Fatalf("a checkpoint was lost: step %d, then %d", before, lastStep(run))
		}
	}
	if full < 3 {
		t.Errorf("the disk was full %d times", full)
	}
	compareRuns(t, calm, run)
}

// TestReadOnlyDisk makes the disk read-only before a run and in the middle of it.
func TestReadOnlyDisk(t *testing.T) {
	bin, config, dir := killSetup(t)
	calm := filepath.Join(dir, "calm")
	if out, err := start(bin, config, calm).CombinedOutput(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	disk := volume(t, "64m")
	remount := func(flags uintptr) {
		t.Helper()
		for { // while a file is open for writing the system refuses
			err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT|flags, "")
			if err == nil {
				return
			}
			if !errors.Is(err, syscall.EBUSY) {
				t.Fatal(err)
			}
		}
	}
	folder := filepath.Join(disk, "run")
	remount(syscall.MS_RDONLY)
	if out, err := start(bin, config, folder).CombinedOutput(); err == nil || !strings.Contains(string(out), "read-only file system") {
		t.Fatalf("on a read-only disk: %v\n%s", err, out)
	}
	remount(0)
	half := begin(t, start(bin, config, folder))
	half.until(t, func() bool { return lastStep(folder) >= 10 })
	half.cmd.Process.Kill()
	<-half.done
	remount(syscall.MS_RDONLY)
	if out, err := start(bin, config, folder).CombinedOutput(); err == nil || !strings.Contains(string(out), "read-only file system") {
		t.Fatalf("on a disk that has become read-only: %v\n%s", err, out)
	}
	remount(0)
	if out, err := start(bin, config, folder).CombinedOutput(); err != nil {
		t.Fatalf("on a disk again: %v\n%s", err, out)
	}
	compareRuns(t, calm, folder)
}
