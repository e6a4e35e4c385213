package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// openTrackers makes the function that starts the trackers of track.to for a run that has made so many steps, or says what they lack.
func openTrackers(c *configs.Config, getenv func(string) string) (func(console io.Writer, step int) track.Trackers, error) {
	server := cmp.Or(c.Track.MLflowURI, getenv("MLFLOW_TRACKING_URI"))
	sinks := map[string]func(track.Run) track.Sink{
		"tensorboard": func(r track.Run) track.Sink { return track.NewTensorBoard(r, time.Now) },
		"wandb":       func(r track.Run) track.Sink { return track.NewWandb(r, c.Track.Python, wandbID(r)) },
		"mlflow":      func(r track.Run) track.Sink { return track.NewMLflow(r, server, getenv, time.Now) },
		"prometheus":  func(r track.Run) track.Sink { return track.NewPrometheus(r, c.Track.PrometheusAddr) },
	}
	for _, name := range c.Track.To {
		if name == "mlflow" {
			if err := checkServer(server); err != nil {
				return nil, err
			}
		}
	}
	return func(console io.Writer, step int) track.Trackers {
		run := track.Run{Name: c.RunName, Project: c.Track.Project, Dir: c.OutputDir, Step: step, Config: c.Flat()}
		var out track.Trackers
		for _, name := range c.Track.To {
			out = append(out, track.Start(name, sinks[name](run), time.Now, func(text string) { fmt.Fprintf(console, "note: %s\n", text) }))
		}
		return out
	}, nil
}

func checkServer(uri string) error {
	u, err := url.Parse(uri)
	switch {
	case uri == "":
		return errors.New("track.to has mlflow, but track.mlflow_uri is empty: set it, or MLFLOW_TRACKING_URI, to the URL of a tracking server")
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("track.mlflow_uri is %s: set it to the URL of a tracking server, http:// or https:// (mlflow server serves a folder or a database)", uri)
	}
	return nil
}

// wandbID is the name of the run for Weights & Biases, which a resumed run finds in its folder.
func wandbID(r track.Run) string {
	path := filepath.Join(r.Dir, "track", "wandb-run-id")
	if b, err := os.ReadFile(path); err == nil && r.Step > 0 {
		return strings.TrimSpace(string(b))
	}
	id := strings.ToLower(rand.Text()[:12])
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(id+"\n"), 0o644)); err != nil {
		return id // a folder that cannot be written to ends the run by itself
	}
	return id
}
