// Command rubicon trains language models with GRPO and LoRA under rubric rewards.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/trainer"
)

// Exit codes.
const (
	exitError       = 1
	exitInterrupted = 130
)

func main() {
	err := run(context.Background(), os.Args[1:])
	switch {
	case errors.Is(err, trainer.ErrInterrupted):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "rubicon:", err)
		if errors.Is(err, syscall.ENOSPC) {
			fmt.Fprintln(os.Stderr, "the disk is full: make room; the same command with --resume=auto then goes on from the newest checkpoint")
		}
		os.Exit(exitError)
	}
}

// run executes one command line. Data goes to stdout, talk to stderr.
func run(ctx context.Context, args []string) error {
	root := &cobra.Command{
		Use:           "rubicon",
		Short:         "Reinforcement learning for language models: GRPO with LoRA under rubric rewards",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(trainCommand(), sftCommand(), launchCommand(), collectCommand(), evalCommand(), generateCommand(), chatCommand(), serveCommand(), logprobsCommand(), tokenizeCommand(),
		importCommand(), exportCommand(), pullCommand(), dataCommand(), rubricsCommand(), memoryCommand(), healthCommand(), topCommand(), boardCommand(), reportCommand(), plotCommand(), configCommand(), doctorCommand(),
		manCommand(), versionCommand())
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// interrupts returns a channel that the first interrupt closes: the run finishes its step and saves. The second ends
// the process at once, which loses nothing that is saved.
func interrupts() <-chan struct{} {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, stopSignals()...)
	first := make(chan struct{})
	go func() {
		<-signals
		signal.Stop(signals) // the next one does what it does to other programs
		fmt.Fprintln(os.Stderr, "\nfinishing this step, then saving; interrupt again to stop at once")
		close(first)
	}()
	return first
}
