package exec

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// The test binary is the command too: TestMain hands over to child if the first of these variables is set.
const (
	childVar = "RUBICON_TEST_EXEC_CHILD" // how the child behaves
	watchVar = "RUBICON_TEST_EXEC_WATCH" // address where the test listens
	markVar  = "RUBICON_TEST_EXEC_MARK"  // a file that tells a second process from the first
	namedVar = "RUBICON_TEST_EXEC_NAMED" // one that the option env names
	raceVar  = "GORACE"                  // under the race detector a child would sleep a second before it ends
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childVar); mode {
	case "":
		os.Exit(m.Run())
	case "run":
		run()
	default:
		child(mode)
	}
}

// child is the command. A completion says what it does with it.
func child(mode string) {
	switch mode {
	case "early":
		os.Exit(4)
	case "deaf":
		time.Sleep(time.Hour)
	case "relative":
		report()
		time.Sleep(time.Hour)
	case "banner":
		fmt.Println("loading the model")
	}
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil && mode == "stubborn" {
			report()
			time.Sleep(time.Hour)
		}
		if err != nil {
			os.Exit(0)
		}
		var q wire.Request
		if err := json.Unmarshal(line, &q); err != nil {
			fmt.Println("bad request", err)
		}
		results := make([]wire.Result, 0)
		for _, item := range q.Items {
			results = append(results, result(item))
		}
		json.NewEncoder(os.Stdout).Encode(map[string]any{"results": results})
	}
}

// run is a run that has a stubborn command score something that never ends.
func run() {
	os.Setenv(childVar, "stubborn")
	p, err := New(rewards.Run{}, map[string]any{"command": []string{os.Args[0]}, "env": []string{childVar, watchVar}})
	if err != nil {
		panic(err)
	}
	p.Score(context.Background(), 0, texts([]string{"hang"}))
}

// result scores by length, or misbehaves.
func result(item wire.Item) wire.Result {
	value := float64(len(item.Completion))
	r := wire.Result{ID: item.ID, Score: &value}
	name, rest, _ := strings.Cut(item.Completion, " ")
	switch name {
	case "":
		r.Score, r.Reason = nil, "empty"
	case "?":
		r.ID = "?"
	case "pid":
		r.Reason = fmt.Sprint(os.Getpid())
	case "env":
		r.Reason = os.Getenv(namedVar) + "|" + os.Getenv("RUBICON_TEST_SECRET")
	case "say":
		fmt.Fprintln(os.Stderr, rest)
	case "once": // the first process dies of it
		if _, err := os.Stat(os.Getenv(markVar)); err != nil {
			os.WriteFile(os.Getenv(markVar), nil, 0o644)
			os.Exit(3)
		}
	case "meet":
		report().Read(make([]byte, 1))
	default:
		misbehave(name)
	}
	return r
}

func misbehave(name string) {
	switch name {
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(3)
	case "hang":
		report()
		time.Sleep(time.Hour)
	case "garbage":
		fmt.Println("Traceback (most recent call last):")
	case "huge":
		fmt.Println(strings.Repeat("x", 2<<20))
	case "partial":
		fmt.Print(`{"results": [{"id": "0/0"`)
		os.Exit(5)
	case "family": // a process of its own, which holds this one's output
		c := osexec.Command(os.Args[0])
		c.Env = append(os.Environ(), childVar+"=relative")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
	}
}

// report tells the test that this process is there, and is so until the connection ends.
func report() net.Conn {
	c, err := net.Dial("tcp", os.Getenv(watchVar))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(c, os.Getpid())
	return c
}

// watch listens for reports of children. The connection ends when the child does.
func watch(t testing.TB) <-chan net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv(watchVar, l.Addr().String())
	seen := make(chan net.Conn, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			bufio.NewReader(c).ReadString('\n')
			seen <- c
		}
	}()
	return seen
}

// next waits for a report.
func next(t testing.TB, seen <-chan net.Conn) net.Conn {
	t.Helper()
	select {
	case c := <-seen:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("no child reports")
	}
	return nil
}

// gone checks that the child behind a report is no more.
func gone(t testing.TB, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
		t.Error("the command still runs")
	}
}

// open makes a provider whose command is this test binary in a mode.
func open(t testing.TB, mode string, settings map[string]any) *Provider {
	t.Helper()
	for name, value := range map[string]string{childVar: mode, markVar: t.TempDir() + "/mark", namedVar: "named", raceVar: "atexit_sleep_ms=0"} {
		t.Setenv(name, value)
	}
	if _, set := os.LookupEnv(watchVar); !set {
		t.Setenv(watchVar, "")
	}
	return openIn(t, t.TempDir(), settings)
}

// openIn makes a provider in the environment as it is.
func openIn(t testing.TB, dir string, settings map[string]any) *Provider {
	t.Helper()
	all := map[string]any{"command": []string{os.Args[0]}, "env": []string{childVar, watchVar, markVar, namedVar, raceVar}}
	for name, v := range settings {
		all[name] = v
	}
	p, err := New(rewards.Run{Dir: dir}, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.(*Provider).Close() })
	return p.(*Provider)
}
