// Package hub downloads models and data sets from a Hugging Face-compatible hub into the cache that Python's huggingface_hub
// uses, in the same layout, so that either finds what the other has fetched:
//
//	models--ORG--NAME/blobs/HASH  snapshots/COMMIT/config.json -> ../../blobs/HASH  refs/main
//	.locks/models--ORG--NAME/HASH.lock
//
// A download is resumed where it was cut, also by another process, and its bytes get their name only when size and hash are
// those that the hub names.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/internal/disk"
)

// Endpoint is the public hub.
const Endpoint = "https://huggingface.co"

// Options say how a hub is reached and where its files are kept.
type Options struct {
	Endpoint string // root of the hub's address
	Token    string // sent to the endpoint alone; "": none
	Cache    string // folder of the cache
	Offline  bool   // ask no server

	Jobs     int           // files at a time
	Tries    int           // in a row that bring nothing, after which a file is given up
	RetryMin time.Duration // first pause between tries
	RetryMax time.Duration // longest pause, unless a server asks for more
	Stall    time.Duration // a connection that brings nothing for so long is given up

	Console      io.Writer // lines about what is done; nil: none
	Now          func() time.Time
	Sleep        func(ctx context.Context, d time.Duration) error
	Free         func(dir string) (bytes int64, known bool) // room on the disk of a folder
	RoundTripper http.RoundTripper                          // nil: the network
}

// DefaultOptions are those of the public hub, without a token and a cache.
func DefaultOptions() Options {
	return Options{
		Endpoint: Endpoint, Jobs: 4, Tries: 6, RetryMin: time.Second, RetryMax: time.Minute, Stall: time.Minute,
		Now: time.Now, Sleep: sleep, Free: disk.Free,
	}
}

// FromEnv are the default options with what the environment says: HF_ENDPOINT, HF_TOKEN or the file that logging in writes,
// HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, and the older names of these.
func FromEnv(getenv func(string) string) (Options, error) {
	o := DefaultOptions()
	first := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	if v := first("HF_ENDPOINT"); v != "" {
		u, err := url.Parse(v)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return o, fmt.Errorf("HF_ENDPOINT is %q: give the address of a hub, such as %s", v, Endpoint)
		}
		o.Endpoint = strings.TrimRight(v, "/")
	}
	o.Offline = isTrue(first("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
	home, err := homeFolder(getenv)
	if err != nil {
		return o, err
	}
	o.Cache = expand(first("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"), getenv)
	if o.Cache == "" {
		o.Cache = filepath.Join(home, "hub")
	}
	o.Token, err = readToken(first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"), expand(first("HF_TOKEN_PATH"), getenv), home)
	return o, err
}

func isTrue(v string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(v))
}

// homeFolder is HF_HOME or its default.
func homeFolder(getenv func(string) string) (string, error) {
	if v := getenv("HF_HOME"); v != "" {
		return expand(v, getenv), nil
	}
	if v := getenv("XDG_CACHE_HOME"); v != "" {
		return filepath.Join(v, "huggingface"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of the hub's cache: %w; set HF_HOME", err)
	}
	return filepath.Join(home, ".cache", "huggingface"), nil
}

// expand replaces a ~ at the beginning and variables.
func expand(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	return os.Expand(path, getenv)
}

func readToken(token, file, home string) (string, error) {
	if token == "" {
		if file == "" {
			file = filepath.Join(home, "token")
		}
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("read the hub's token: %w", err)
		}
		token = string(text)
	}
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the hub's token has a character that no token has: set HF_TOKEN to what the hub's settings show")
	}
	return token, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Client downloads. It is safe for concurrent use.
type Client struct {
	o        Options
	http     *http.Client
	progress *progress
}

// New makes a client.
func New(o Options) *Client {
	c := &Client{o: o, progress: newProgress(o.Console, o.Now)}
	transport := o.RoundTripper
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = o.Jobs
		transport = t
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: c.redirect}
	return c
}

// Close ends the connections that are kept for reuse.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxRedirects is how often a request is sent on.
const maxRedirects = 10

// redirect lets the token go to the endpoint alone, whatever a server on the way says.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return refusal{fmt.Errorf("sent on more than %d times", maxRedirects)}
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return refusal{fmt.Errorf("sent on from https to %s, which anyone on the way can change", req.URL.Scheme)}
	}
	c.authorize(req)
	return nil
}

// authorize puts the token on a request to the endpoint and takes it off any other.
func (c *Client) authorize(req *http.Request) {
	req.Header.Del("Authorization")
	own, err := url.Parse(c.o.Endpoint)
	if err == nil && c.o.Token != "" && own.Scheme == req.URL.Scheme && own.Host == req.URL.Host {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
}

// errOffline is why nothing is asked for.
var errOffline = errors.New("HF_HUB_OFFLINE is set, so no server is asked: unset it to download")
