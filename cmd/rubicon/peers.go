package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/dist"
	"github.com/rubicon-rl/rubicon/trainer"
)

// peers are the processes of a run, and which of them this one is.
type peers struct {
	group *dist.Group // nil: it is the only one
	place dist.Place
}

// withPeers makes a run together with the other processes that the launcher has started for it.
func withPeers(ctx context.Context, c *configs.Config, stop <-chan struct{}, run func(peers) error) error {
	place, err := dist.Find(os.Getenv)
	if err != nil {
		return err
	}
	if place.World == 1 {
		return run(peers{place: place})
	}
	if os.Getenv("LOCAL_RANK") == "" { // which GPU is whose, whatever the launcher calls it
		if err := os.Setenv("LOCAL_RANK", strconv.Itoa(place.Local)); err != nil {
			return err
		}
	}
	group, err := meet(ctx, c, place, stop)
	if err != nil {
		return fmt.Errorf("rank %d of %d (%s): %w", place.Rank, place.World, place.Launcher, err)
	}
	err = run(peers{group, place})
	if together(err) {
		return errors.Join(err, group.Close(nil))
	}
	err = fmt.Errorf("rank %d: %w", place.Rank, err)
	return errors.Join(err, group.Close(err))
}

// together reports whether a run has ended like this on all its ranks.
func together(err error) bool {
	return err == nil || errors.Is(err, trainer.ErrInterrupted) || errors.Is(err, trainer.ErrPaused) || errors.Is(err, trainer.ErrDiverged)
}

// meet connects the processes.
func meet(ctx context.Context, c *configs.Config, place dist.Place, stop <-chan struct{}) (*dist.Group, error) {
	timeout := time.Duration(c.Dist.Timeout * float64(time.Second))
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not all ranks came within %v (dist.timeout)", timeout))
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	var link dist.Link
	var err error
	switch {
	case c.Dist.Backend == "mpi", c.Dist.Backend == "auto" && place.MPI:
		link, err = dist.MPI(place, os.Getenv)
	case place.Address == "":
		err = errors.New("no address at which to meet rank 0: set MASTER_ADDR to its machine and MASTER_PORT to a free port there")
	default:
		link, err = dist.TCP(ctx, place, c.OutputDir)
	}
	if err != nil {
		return nil, err
	}
	return dist.NewGroup(link, timeout), nil
}

// alone refuses to be one of several processes; what is done by one says so.
func alone(what string) error {
	place, err := dist.Find(os.Getenv)
	if err == nil && place.World > 1 {
		err = fmt.Errorf("this is one of %d processes (%s), but %s by one: start one", place.World, place.Launcher, what)
	}
	return err
}
