package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/rewards/arco"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

// annotatedRow is a line of the data that a rubric model is warmed up on.
type annotatedRow struct {
	Task   string
	Reward *float64
	Steps  []struct {
		Action, Observation string
		Criteria            []string
		Scores              []float64
	}
}

// episode reads a row of annotated data.
func (r *annotatedRow) episode(id string, columns map[string]any) (arco.Annotated, error) {
	text, err := json.Marshal(columns)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	switch {
	case err != nil:
		return arco.Annotated{}, err
	case r.Task == "" || r.Reward == nil || len(r.Steps) == 0:
		return arco.Annotated{}, errors.New(`a row is {"task": ..., "reward": 0 to 1, "steps": [{"action", "observation", "criteria": [...], "scores": [...]}]}`)
	case *r.Reward < 0 || *r.Reward > 1:
		return arco.Annotated{}, fmt.Errorf("the reward is %v: give 0 to 1", *r.Reward)
	}
	a := arco.Annotated{Episode: arco.Episode{ID: id, Task: r.Task, Reward: *r.Reward}}
	for k, s := range r.Steps {
		if s.Action == "" || len(s.Criteria) == 0 || len(s.Scores) == 0 {
			return a, fmt.Errorf("step %d has no action, criteria or scores", k+1)
		}
		a.Steps = append(a.Steps, arco.Move{Action: s.Action, Observation: s.Observation})
		a.Marks = append(a.Marks, arco.Step{Criteria: s.Criteria, Scores: s.Scores})
	}
	return a, nil
}

// annotated reads the annotated episodes of files. Those of one step say nothing of how a reward is shared out: they are left out, as
// in the public code.
func (r *openedRun) annotated(files []string) ([]arco.Annotated, error) {
	options := dataOptions(r.Config.Data)
	options.NoPrompt, options.PromptColumn, options.MessagesColumn = true, "", ""
	prompts, _, err := data.Prompts(files, options)
	if err != nil {
		return nil, err
	}
	var list []arco.Annotated
	single := 0
	for _, p := range prompts {
		var row annotatedRow
		a, err := row.episode(p.ID, p.Columns)
		switch {
		case err != nil:
			if err := r.badRow(fmt.Errorf("episode %s: %w", p.ID, err)); err != nil {
				return nil, err
			}
		case len(a.Steps) == 1:
			single++
		default:
			list = append(list, a)
		}
	}
	if single > 0 {
		fmt.Fprintf(r.Console, "note: left out %d episodes of one step\n", single)
	}
	if len(list) == 0 {
		return nil, errors.New("no episode is left to learn from")
	}
	return list, nil
}

// warmRubric warms up ARCO's rubric model and writes it to the run's folder, from where reward.options.adapter takes it.
func warmRubric(ctx context.Context, c *configs.Config, dry bool) (err error) {
	if c.Reward.Kind != "arco" {
		return fmt.Errorf("reward.kind is %s: a rubric model belongs to arco", c.Reward.Kind)
	}
	if _, err := os.Stat(filepath.Join(c.OutputDir, "adapter_config.json")); err == nil {
		return fmt.Errorf("%s holds a rubric model already: set output_dir to another folder", c.OutputDir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r, err := openRun(c, nil, peers{})
	if err != nil {
		return err
	}
	defer closing(&err, r.close)
	list, err := r.annotated(c.Data.TrainFiles)
	if err != nil {
		return fmt.Errorf("training data: %w", err)
	}
	if r.reward, err = r.openReward("", 0); err != nil {
		return err
	}
	if r.Model, r.Adapter, err = openModel(ctx, c, r.Device); err == nil {
		err = r.bind(ctx)
	}
	if err != nil {
		return err
	}
	w, err := warming(c, list)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Console, "rubric     %d annotated episodes, %d updates of %d steps\nfolder     %s\n", len(list), w.Total, w.Batch, c.OutputDir)
	if dry {
		return nil
	}
	return r.warm(ctx, list, w)
}

// warming are the updates that section optim asks for.
func warming(c *configs.Config, list []arco.Annotated) (w arco.Warming, err error) {
	steps := 0
	for _, a := range list {
		steps += len(a.Steps)
	}
	o := c.Optim
	w.Batch = max(1, o.PerDeviceTrainBatchSize) * max(1, o.GradientAccumulationSteps)
	w.Seed, w.Total = uint64(c.Seed), o.MaxSteps
	if w.Total < 1 {
		w.Total = max(1, int(o.NumTrainEpochs*float64(steps))/w.Batch)
	}
	o.LearningRate = 1 // a share of the rubric model's own
	w.Rate, err = trainer.NewSchedule(o, w.Total)
	return w, err
}

// warm makes the updates and saves.
func (r *openedRun) warm(ctx context.Context, list []arco.Annotated, w arco.Warming) (err error) {
	dir := r.Config.OutputDir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	defer closing(&err, log.Close)
	var failed error
	w.Told = func(step int, m map[string]float64) {
		line := map[string]any{"step": step}
		for name, v := range m {
			line[name] = v
		}
		failed = errors.Join(failed, json.NewEncoder(log).Encode(line))
		if every := r.Config.Track.LoggingSteps.Every(w.Total); every > 0 && step%every == 0 || step == w.Total {
			fmt.Fprintf(r.Console, "step %d/%d  loss %.4f  lm %.4f  mse %.4f\n", step, w.Total, m["loss"], m["lm"], m["mse"])
		}
	}
	p := r.reward.Provider.(*arco.Provider)
	if err := errors.Join(p.Warm(ctx, list, w), failed); err != nil {
		return err
	}
	return p.SaveModel(dir)
}
