package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, USER_HZ, which Linux fixes at 100 for programs.
const tick = 0.01

// machine is what figures depend on.
type machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Threads int    `json:"threads"` // of every program
	Memory  string `json:"memory"`
}

func thisMachine(threads int) machine {
	of := func(name string) string { return field("/proc/cpuinfo", name) }
	return machine{
		CPU:   fmt.Sprintf("%s (family %s, model %s)", of("model name"), of("cpu family"), of("model")), // the name alone may say little
		Cores: runtime.NumCPU(), Threads: threads, Memory: field("/proc/meminfo", "MemTotal"),
	}
}

// field is the first value of a name in one of /proc's files of "name : value".
func field(file, name string) string {
	b, _ := os.ReadFile(file) // unreadable: unknown
	for _, line := range strings.Split(string(b), "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// busy is the processor time, in seconds, that the machine has been used or taken by its host.
func busy() (float64, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("needs Linux's /proc: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return parseBusy(line)
}

// parseBusy reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, ...
func parseBusy(line string) (float64, error) {
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	total := 0.0
	for i, s := range f[1:9] {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, err
		}
		if i != 3 && i != 4 {
			total += v
		}
	}
	return total * tick, nil
}

// used is the processor time of a process and all its threads, seconds.
func used(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the state on; the name may hold spaces
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, b)
	}
	user, err := strconv.ParseFloat(f[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(f[12], 64)
	return (user + system) * tick, err
}

// peakMiB is the most memory that a process has held.
func peakMiB(pid int) (float64, error) {
	f := strings.Fields(field(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"))
	if len(f) != 2 {
		return 0, fmt.Errorf("/proc/%d/status does not say VmHWM", pid)
	}
	kib, err := strconv.ParseFloat(f[0], 64)
	return kib / 1024, err
}

// waitIdle waits until less than limit processors are in use, patience at most; what was measured then shows how busy it was.
func waitIdle(limit float64, patience time.Duration) error {
	const window = 300 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		before, err := busy()
		if err != nil {
			return err
		}
		began := time.Now()
		time.Sleep(window)
		after, err := busy()
		if err != nil {
			return err
		}
		if (after-before)/time.Since(began).Seconds() < limit || time.Now().After(deadline) {
			return nil
		}
	}
}

// revision is the commit that is measured, with -dirty if files differ from it.
func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
