//go:build slow && linux && (amd64 || arm64) && !nocuda && !nodl

package native

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// ended is how a rank's process ended.
type ended struct {
	err    error
	output string
}

// group starts a process for each rank and waits for all of them.
func group(t *testing.T, world int, env ...string) []ended {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	commands, outputs := make([]*exec.Cmd, world), make([]*bytes.Buffer, world)
	for r := range world {
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env = append(os.Environ(), append(env, fmt.Sprint("RANK=", r), fmt.Sprint("LOCAL_RANK=", r), fmt.Sprint("WORLD_SIZE=", world),
			fmt.Sprint("FAKEGPU_devices=", world))...)
		outputs[r] = new(bytes.Buffer)
		c.Stderr = outputs[r]
		commands[r] = c
	}
	first, err := commands[0].StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := commands[0].Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(first).ReadString('\n')
	if err != nil {
		t.Fatalf("rank 0: %v, %s", err, id)
	}
	for r := 1; r < world; r++ {
		commands[r].Stdin = strings.NewReader(id)
		if err := commands[r].Start(); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]ended, world)
	var waits sync.WaitGroup
	for r := range world {
		waits.Go(func() { all[r].err = commands[r].Wait() })
	}
	waits.Wait()
	for r := range all {
		all[r].output = outputs[r].String()
	}
	return all
}

// Sums over several processes, with the group's name passed by value: a wrong argument gives a wrong sum, or none.
func TestGroup(t *testing.T) {
	for _, world := range []int{2, 4} {
		for _, lazy := range []string{"0", "1"} {
			t.Run(fmt.Sprintf("%d-lazy%s", world, lazy), func(t *testing.T) {
				for r, e := range group(t, world, "FAKEGPU_lazy="+lazy) {
					if e.err != nil {
						t.Errorf("rank %d: %v\n%s", r, e.err, e.output)
					}
				}
			})
		}
	}
}

// A rank that dies must not leave the others hanging: the library notices, or else the wait ends.
func TestDeadRank(t *testing.T) {
	for _, c := range []struct {
		name, silent, wait, say string
	}{
		{"noticed", "0", "30s", "ncclRemoteError"},
		{"silent", "1", "500ms", "waited in vain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			for r, e := range group(t, 3, "TEST_DIES=1", "FAKEGPU_silent="+c.silent, "TEST_WAIT="+c.wait) {
				switch {
				case r == 1 && (e.err == nil || e.err.Error() != "exit status 3"):
					t.Errorf("the rank that was to die: %v\n%s", e.err, e.output)
				case r != 1 && (e.err == nil || !strings.Contains(e.output, c.say)):
					t.Errorf("rank %d: %v, want %q\n%s", r, e.err, c.say, e.output)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
