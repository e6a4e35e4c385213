package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/embedded"
	"github.com/rubicon-rl/rubicon/internal/hub"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// adapterName is the set that a run with lora trains, initialName its frozen copy at the start.
const (
	adapterName = "policy"
	initialName = "initial"
)

// openModel loads the policy as the configuration says, with the adapter that is trained ("" if all weights are).
func openModel(ctx context.Context, c *configs.Config, dev device.Device) (m *policy.Model, adapter string, err error) {
	files, err := openFiles(c.Model.Path)
	if err != nil {
		return nil, "", err
	}
	defer closing(&err, files.close)
	o := policy.LoadOptions{DType: c.Model.WeightDType(), Train: c.Model.Trainable}
	if c.Model.Init == "random" {
		cfg, err := files.config()
		if err != nil {
			return nil, "", err
		}
		m, err = policy.New(ctx, dev, cfg, uint64(c.Seed), o)
		if err != nil {
			return nil, "", err
		}
	} else if m, err = files.load(ctx, dev, o); err != nil {
		return nil, "", fmt.Errorf("load model %s: %w", c.Model.Path, err)
	}
	if c.Model.Trainable == "full" {
		return m, "", nil
	}
	if c.Model.Adapter != "" {
		err = loadAdapter(m, c.Model.Adapter)
	} else {
		err = m.AddAdapter(adapterName, loraConfig(c.LoRA), uint64(c.Seed))
	}
	if err != nil {
		return nil, "", errors.Join(err, m.Close())
	}
	return m, adapterName, nil
}

func loraConfig(l configs.LoRA) policy.LoRAConfig {
	return policy.LoRAConfig{R: l.R, Alpha: l.Alpha, RSLoRA: l.RSLoRA, Dropout: l.Dropout, TargetModules: l.TargetModules}
}

// loadAdapter loads an adapter that belongs to the model.
func loadAdapter(m *policy.Model, dir string) error {
	if err := trainer.CheckAdapter(dir, m.Fingerprint()); err != nil {
		return err
	}
	return m.LoadAdapter(adapterName, dir)
}

// openReference is the policy that the KL is taken to.
func openReference(ctx context.Context, c *configs.Config, dev device.Device, m *policy.Model) (trainer.Reference, error) {
	switch {
	case !c.NeedsReference():
		return trainer.Reference{}, nil
	case c.Model.Trainable == "full": // a second, frozen model
		ref, _, err := loadFrozen(ctx, dev, modelFlags{model: c.Model.Path, dtype: c.Model.WeightDType()})
		return trainer.Reference{Model: ref}, err
	case c.GRPO.Reference == "initial" && c.Model.Adapter != "":
		return trainer.Reference{Model: m, Adapter: initialName}, m.CopyAdapter(initialName, adapterName)
	}
	return trainer.Reference{Model: m}, nil
}

// loadConfig reads the configuration of a command and shows what its loading decided.
func loadConfig(files, overrides []string, w io.Writer) (*configs.Config, error) {
	c, notes, err := configs.Load(files, overrides, environ())
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return c, err
}

// environ is the environment without the variables that are not configuration keys: those of tests and of libraries.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"RUBICON_CPU_TIER", "RUBICON_LIBCUDA", "RUBICON_CUBLAS", "RUBICON_NCCL", "RUBICON_LIBMPI"}, name) ||
			strings.HasPrefix(name, "RUBICON_CUDA_") || strings.HasPrefix(name, "RUBICON_CI") || strings.HasPrefix(name, "RUBICON_TEST_")
	})
}

// newConsole shows a run on stderr.
func newConsole(c *configs.Config) *track.Console {
	fd := int(os.Stderr.Fd())
	terminal := term.IsTerminal(fd)
	live := c.Track.Progress == "bar" || c.Track.Progress == "auto" && terminal
	var w io.Writer = os.Stderr
	if c.Track.Progress == "off" {
		w = io.Discard
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		width = 0
	}
	return &track.Console{W: w, Live: live, Color: terminal && colors(os.Getenv), Width: width, Now: time.Now}
}

// colors reports whether a terminal is to show colours (no-color.org).
func colors(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// modelDir resolves a model's path: embedded models are put in a folder of the user's cache first, models of the hub are in its
// cache already.
func modelDir(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("model.path is not set: give a Hugging Face folder, a GGUF file, ORG/NAME of a model that rubicon pull fetched, or embedded:quickstart")
	}
	if strings.HasPrefix(path, embedded.Scheme) {
		return embedded.Path(path)
	}
	return hub.Model(path, os.Getenv)
}

// dataFiles resolves the paths of data files likewise.
func dataFiles(files []string) ([]string, error) {
	out := make([]string, len(files))
	for i, f := range files {
		var err error
		if out[i], err = embedded.Path(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// closing closes at the end of a function; its error counts only if nothing went wrong before, because a device that has
// failed says so again when it is closed.
func closing(err *error, shut func() error) {
	if e := shut(); *err == nil {
		*err = e
	}
}
