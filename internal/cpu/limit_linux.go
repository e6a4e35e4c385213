package cpu

import (
	"os"
	"strconv"
	"strings"
)

// memoryLimit is the machine's memory in bytes, or the control group's limit if that is lower; 0 if unknown.
func memoryLimit() int64 {
	limit := meminfo("MemTotal:")
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// meminfo is one line of the kernel's memory table, in bytes.
func meminfo(key string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
