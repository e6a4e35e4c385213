package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/board"
)

func boardCommand() *cobra.Command {
	var address, token string
	cmd := &cobra.Command{
		Use:   "board RUN...",
		Short: "Show runs, live or ended, as a web page",
		Long: `Show the folders of one or several runs as a web page: charts of every metric with the runs overlaid, and the
completions of each step. It only reads. Other machines reach it only if --http names an address of theirs and --token is given.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, folders []string) error {
			if err := board.CheckAddress(address, token); err != nil {
				return err
			}
			runs := make([]*board.Run, len(folders))
			for i, dir := range folders {
				run, err := board.Open(dir)
				if err != nil {
					return err
				}
				runs[i] = run
			}
			handler, err := board.Handler(runs, token)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("listen on %s: %w", address, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "http://%s (interrupt to end)\n", l.Addr())
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveUntil(ctx, l, handler)
		},
	}
	cmd.Flags().StringVar(&address, "http", "127.0.0.1:7700", "address to listen on")
	cmd.Flags().StringVar(&token, "token", "", "what a browser must give as ?token=...")
	return cmd
}

// serveUntil answers on l until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := context.AfterFunc(ctx, func() { server.Close() })
	defer done()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
