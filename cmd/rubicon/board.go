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
			runs := make([]*board.Run, len(folders))
			for i, dir := range folders {
				run, err := board.Open(dir)
				if err != nil {
					return err
				}
				runs[i] = run
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			p, err := openPage(runs, address, token)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "http://%s (interrupt to end)\n", p.listener.Addr())
			return p.serve(ctx)
		},
	}
	cmd.Flags().StringVar(&address, "http", "127.0.0.1:7700", "address to listen on")
	cmd.Flags().StringVar(&token, "token", "", "what a browser must give as ?token=...")
	return cmd
}

// page is a board that listens.
type page struct {
	listener net.Listener
	handler  http.Handler
}

func openPage(runs []*board.Run, address, token string) (*page, error) {
	address, err := board.Address(address, token)
	if err != nil {
		return nil, err
	}
	p := &page{}
	if p.handler, err = board.Handler(runs, token); err != nil {
		return nil, err
	}
	if p.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return p, nil
}

// serve answers until ctx ends.
func (p *page) serve(ctx context.Context) error {
	server := &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second}
	done := context.AfterFunc(ctx, func() { server.Close() })
	defer done()
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// show opens the page of a run that is going to begin, if it has one; it goes when hide is called.
func (r *openedRun) show(o runOptions) (hide func(), err error) {
	if o.http == "" || o.peers.place.Rank > 0 {
		return func() {}, nil
	}
	p, err := openPage([]*board.Run{board.At(r.Config.OutputDir)}, o.http, "")
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	fmt.Fprintf(r.Console, "page       http://%s\n", p.listener.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() { gone <- p.serve(ctx) }()
	return func() {
		cancel()
		if err := <-gone; err != nil {
			fmt.Fprintf(r.Console, "note: %v\n", err)
		}
	}, nil
}
