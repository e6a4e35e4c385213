package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// reply is a line from a program: it is ready, or the figures of one sample.
type reply struct {
	Ready    bool              `json:"ready,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
	Values   values            `json:"values,omitempty"`
}

// child is a running program.
type child struct {
	subject
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	log      *os.File
	versions map[string]string
}

// start starts a subject of a case and waits until it is ready.
func start(ctx context.Context, p places, c testCase, s subject) (*child, error) {
	text, err := json.Marshal(s.Spec)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.logs, strings.ReplaceAll(c.Name+" "+s.Name, " ", "_")+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, p.self, "serve", string(text))
	if s.Script != "" {
		cmd = exec.CommandContext(ctx, p.python, filepath.Join(p.peers, s.Script), string(text))
		cmd.Env = peerEnv(s.Spec["threads"])
	}
	cmd.Stderr = log
	k := &child{subject: s, cmd: cmd, log: log}
	if k.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	k.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, err := k.read()
	if err != nil {
		return nil, err
	}
	k.versions = r.Versions
	return k, nil
}

// peerEnv is this process's environment with the peers' thread counts, and without OpenBLAS's settings, which make it slow.
func peerEnv(threads any) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENBLAS_") {
			env = append(env, v)
		}
	}
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		env = append(env, fmt.Sprintf("%s=%v", name, threads))
	}
	return env
}

// ask has one sample made.
func (k *child) ask(p point) (values, error) {
	line, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if _, err := k.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	r, err := k.read()
	return r.Values, err
}

func (k *child) read() (r reply, err error) {
	line, err := k.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		err = fmt.Errorf("%s does not answer (%w): read %s", k.Name, err, k.log.Name())
	}
	return r, err
}

// stop ends the program: it has no more to read. One that does not go is killed.
func (k *child) stop() {
	k.in.Close()
	kill := time.AfterFunc(10*time.Second, func() { k.cmd.Process.Kill() })
	defer kill.Stop()
	k.cmd.Wait() // how it ends does not matter
	k.log.Close()
}
