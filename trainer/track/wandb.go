package track

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// wandbScript gives lines to the official client.
//
//go:embed wandb_send.py
var wandbScript []byte

const wandbScriptName = "wandb_send.py"

// Wandb sends a run to Weights & Biases by the official Python client, which runs beside it. The lines are kept in track/wandb.jsonl in any
// case, and track/wandb_send.py sends them later from a machine that has the client.
type Wandb struct {
	run    Run
	python string // that has the client
	id     string // of the run

	kept *os.File
	pipe *os.File // to the client
	cmd  *exec.Cmd
	died chan error
	lost error // why there is no client (any more); lines are kept all the same
}

// NewWandb makes the sink of a run; id names the run, so that it is the same one after it is resumed.
func NewWandb(run Run, python, id string) *Wandb { return &Wandb{run: run, python: python, id: id} }

func (w *Wandb) path(name string) string { return filepath.Join(w.run.Dir, "track", name) }

// Begin implements Sink. A missing client is told with the first line.
func (w *Wandb) Begin(ctx context.Context) error {
	if err := w.keep(); err != nil {
		return err
	}
	if err := w.start(ctx); err != nil {
		w.lost = fmt.Errorf("%w; %s", err, w.later())
	}
	begin := map[string]any{"id": w.id, "name": w.run.Name, "project": w.run.Project, "config": w.run.Config}
	if err := w.write(ctx, map[string]any{"begin": begin}); err != w.lost {
		return err
	}
	return nil
}

// keep opens the file of lines, and puts the script beside it.
func (w *Wandb) keep() error {
	if err := os.MkdirAll(w.path(""), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(w.path(wandbScriptName), wandbScript, 0o644); err != nil {
		return err
	}
	mode := os.O_TRUNC
	if w.run.Step > 0 {
		mode = os.O_APPEND
	}
	var err error
	w.kept, err = os.OpenFile(w.path("wandb.jsonl"), os.O_CREATE|os.O_WRONLY|mode, 0o644)
	return err
}

func (w *Wandb) later() string {
	return fmt.Sprintf("the lines are in %s: on a machine with the client, python3 %s <wandb.jsonl sends them", w.path("wandb.jsonl"), wandbScriptName)
}

// start runs the client beside the run, if it is installed.
func (w *Wandb) start(ctx context.Context) error {
	if err := exec.CommandContext(ctx, w.python, w.path(wandbScriptName), "--check").Run(); err != nil {
		return fmt.Errorf("%s has no package wandb (%w): install it, or set track.python", w.python, err)
	}
	log, err := os.Create(w.path("wandb.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	w.cmd = exec.Command(w.python, "-u", w.path(wandbScriptName))
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = read, log, log
	if err := w.cmd.Start(); err != nil {
		return errors.Join(err, write.Close())
	}
	w.pipe, w.died = write, make(chan error, 1)
	go func() { w.died <- w.cmd.Wait() }() // stop waits for it
	return nil
}

// Send implements Sink. What is not a number is left out.
func (w *Wandb) Send(ctx context.Context, r Record, at time.Time) error {
	values := map[string]float64{}
	for name, v := range r.Values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			values[name] = v
		}
	}
	return w.write(ctx, map[string]any{"step": r.Step, "values": values, "time": float64(at.UnixNano()) / 1e9})
}

// End implements Sink: it waits for the client, which sends what it still has.
func (w *Wandb) End(ctx context.Context, e End) error {
	files := []string{}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		within, err := filepath.Rel(w.run.Dir, e.Files[name])
		if err != nil || !filepath.IsLocal(within) {
			continue // the client keeps names below a folder
		}
		if _, err := os.Stat(e.Files[name]); !errors.Is(err, fs.ErrNotExist) {
			files = append(files, filepath.ToSlash(within))
		}
	}
	err := w.write(ctx, map[string]any{"end": map[string]any{"status": e.Status, "files": files}})
	if w.lost == nil {
		err = w.stop(ctx)
	}
	return errors.Join(err, w.kept.Close())
}

// write keeps a line and gives it to the client.
func (w *Wandb) write(ctx context.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if _, err := w.kept.Write(b); err != nil {
		return err
	}
	if w.lost != nil {
		return w.lost
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := w.pipe.SetWriteDeadline(deadline); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			return err
		}
	}
	if _, err := w.pipe.Write(b); err != nil { // half a line may be written: this client is of no more use
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if w.lost = w.stop(gone); w.lost == nil {
			w.lost = err
		}
	}
	return w.lost
}

// stop waits for the client's end, and kills it when ctx ends.
func (w *Wandb) stop(ctx context.Context) error {
	err := w.pipe.Close()
	kill := context.AfterFunc(ctx, func() { w.cmd.Process.Kill() }) // its error says that the client has ended
	defer kill()
	if died := <-w.died; died != nil {
		err = errors.Join(err, fmt.Errorf("the client of wandb: %w (see %s); %s", died, w.path("wandb.log"), w.later()))
	}
	return err
}
