package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/serve"
	"github.com/rubicon-rl/rubicon/trainer"
)

// serveFlags are what serve takes.
type serveFlags struct {
	modelFlags
	name, host, keyEnv string
	port               int
	adapters           map[string]string
	options            serve.Options
	grace              time.Duration
	kwargs             string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve --model DIR",
		Short: "Serve a model and its adapters by OpenAI's HTTP protocol",
		Long: `Answers /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models, /health and /metrics, and with --lora-dir
/v1/load_lora_adapter and /v1/unload_lora_adapter. The base model is served as --served-model-name, each --lora-modules NAME=DIR
as NAME. Prints the URL when it is ready. The first interrupt (or SIGTERM) refuses new requests and waits --grace for those in flight.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f.serve(ctx, cmd)
		},
	}
	f.modelFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.name, "served-model-name", "", "name of the base model in requests (default: --model)")
	fs.StringToStringVar(&f.adapters, "lora-modules", nil, "NAME=DIR of an adapter that is served too")
	fs.StringVar(&f.options.Adapters, "lora-dir", "", "folder from which adapters may be loaded while it runs")
	fs.StringVar(&f.host, "host", "127.0.0.1", "address to listen at; another one than loopback needs --api-key-env")
	fs.IntVar(&f.port, "port", 8000, "port to listen at; 0: any")
	fs.StringVar(&f.keyEnv, "api-key-env", "", "environment variable with the key that clients have to send")
	fs.IntVar(&f.options.Session.MaxBatch, "max-num-seqs", 64, "completions generated at a time")
	fs.IntVar(&f.options.Session.KVTokens, "kv-tokens", 0, "size of the cache of keys and values, tokens; 0: four times the model's context, from 16384 to 65536")
	fs.IntVar(&f.options.MaxTokens, "max-tokens", 4096, "longest completion, tokens")
	fs.IntVar(&f.options.MaxQueue, "max-queue", 1024, "completions in flight; more are refused with status 429")
	fs.Int64Var(&f.options.MaxBody, "max-body", 8<<20, "longest request, bytes")
	fs.DurationVar(&f.options.Timeout, "timeout", 10*time.Minute, "longest time for one request")
	fs.DurationVar(&f.grace, "grace", time.Minute, "time for requests in flight after an interrupt")
	fs.Uint64Var(&f.options.Seed, "seed", 42, "seed of requests that bring none")
	fs.StringVar(&f.kwargs, "chat-template-kwargs", "", "JSON object of variables for the chat template")
	return cmd
}

// serve serves until ctx ends.
func (f *serveFlags) serve(ctx context.Context, cmd *cobra.Command) (err error) {
	if err := errors.Join(f.checkAccess(), f.checkBounds()); err != nil {
		return err
	}
	l, err := f.load(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	o := f.options
	o.Model, o.Tokenizer, o.EOS, o.Now = l.model, l.tok, trainer.EOS(l.model.Config(), l.tok), time.Now
	o.Check = func(dir string) error { return trainer.CheckAdapter(dir, l.model.Fingerprint()) }
	if o.Name = f.name; o.Name == "" {
		o.Name = f.model
	}
	if o.Session.KVTokens == 0 {
		o.Session.KVTokens = min(max(4*l.model.Config().MaxPositions, 1<<14), 1<<16)
	}
	if f.kwargs != "" {
		if err := json.Unmarshal([]byte(f.kwargs), &o.Kwargs); err != nil {
			return fmt.Errorf("--chat-template-kwargs: %w", err)
		}
	}
	if o.Adapters != "" {
		if o.Adapters, err = filepath.Abs(o.Adapters); err != nil {
			return err
		}
	}
	s, err := serve.New(o)
	if err != nil {
		return err
	}
	defer s.Close()
	adapters := map[string]string{}
	maps.Copy(adapters, f.adapters)
	if f.adapter != "" {
		adapters[f.adapter] = f.adapter
	}
	for name, dir := range adapters {
		if err := s.Load(ctx, name, dir); err != nil {
			return fmt.Errorf("adapter %s: %w", name, err)
		}
	}
	return f.listen(ctx, s, cmd)
}

// checkAccess refuses an open door to the world, and finds the key.
func (f *serveFlags) checkAccess() error {
	if f.keyEnv != "" {
		if f.options.APIKey = os.Getenv(f.keyEnv); f.options.APIKey == "" {
			return fmt.Errorf("--api-key-env is %s, but that environment variable is empty: export it", f.keyEnv)
		}
	}
	ip := net.ParseIP(f.host)
	if local := f.host == "localhost" || ip != nil && ip.IsLoopback(); !local && f.options.APIKey == "" {
		return fmt.Errorf("--host %s can be reached by others: set --api-key-env, or listen at 127.0.0.1", f.host)
	}
	return nil
}

// checkBounds refuses a server that could answer nothing.
func (f *serveFlags) checkBounds() error {
	o := &f.options
	if min(int64(o.Session.MaxBatch), int64(o.MaxTokens), int64(o.MaxQueue), o.MaxBody, int64(o.Timeout)) < 1 || o.Session.KVTokens < 0 {
		return errors.New("--max-num-seqs, --max-tokens, --max-queue, --max-body and --timeout must be above 0, --kv-tokens not below it")
	}
	if o.Adapters != "" {
		if info, err := os.Stat(o.Adapters); err != nil || !info.IsDir() {
			return fmt.Errorf("--lora-dir %s is not a folder: make it, or leave the option out", o.Adapters)
		}
	}
	return nil
}

// listen answers until ctx ends, and then lets requests in flight finish.
func (f *serveFlags) listen(ctx context.Context, s *serve.Server, cmd *cobra.Command) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(f.host, strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/v1\n", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "no new requests are taken; those in flight are answered")
	grace, cancel := context.WithTimeout(context.Background(), f.grace)
	defer cancel()
	drained := s.Drain(grace)
	s.Close()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(drained, server.Shutdown(closing)); err != nil {
		return fmt.Errorf("requests were cut off after --grace %v: %w", f.grace, errors.Join(err, server.Close()))
	}
	return nil
}
