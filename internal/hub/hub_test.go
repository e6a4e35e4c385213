package hub

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

func TestParseRepo(t *testing.T) {
	for text, want := range map[string]Repo{
		"Qwen/Qwen2.5-7B-Instruct": {Name: "Qwen/Qwen2.5-7B-Instruct", Revision: "main"},
		"a/b@refs/pr/1":            {Name: "a/b", Revision: "refs/pr/1"},
	} {
		if got, err := ParseRepo(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "name", "a/b/c", "../b", "./b", "a/..", "~/b", "/a/b", "a/b@", "a/b@../x", "a/b@/x", "a/b@x/../../y", "a--b/c", "a/b@c:d", "a b/c", "embedded:x/y"} {
		if got, err := ParseRepo(text); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
}

func TestFromEnv(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, "hf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "hf", "token"), []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env                    map[string]string
		endpoint, token, cache string
		offline                bool
	}{
		{nil, "https://huggingface.co", "", home + "/.cache/huggingface/hub", false},
		{map[string]string{"XDG_CACHE_HOME": "/c"}, "https://huggingface.co", "", "/c/huggingface/hub", false},
		{map[string]string{"HF_HOME": "~/hf", "HF_HUB_OFFLINE": "yes"}, "https://huggingface.co", "hf_file", home + "/hf/hub", true},
		{map[string]string{"HF_HOME": "$HOME/hf", "HF_TOKEN": " hf_env ", "HOME": home}, "https://huggingface.co", "hf_env", home + "/hf/hub", false},
		{map[string]string{"HF_TOKEN_PATH": home + "/hf/token", "HF_HUB_CACHE": "/x", "HUGGINGFACE_HUB_CACHE": "/y"}, "https://huggingface.co", "hf_file", "/x", false},
		{map[string]string{"HF_ENDPOINT": "http://mirror:8080/", "HUGGINGFACE_HUB_CACHE": "/y", "HF_HUB_OFFLINE": "0"}, "http://mirror:8080", "", "/y", false},
	} {
		o, err := FromEnv(func(name string) string { return c.env[name] })
		if err != nil || o.Endpoint != c.endpoint || o.Token != c.token || filepath.ToSlash(o.Cache) != filepath.ToSlash(c.cache) || o.Offline != c.offline {
			t.Errorf("%v: %s, %q, %s, %v, %v", c.env, o.Endpoint, o.Token, o.Cache, o.Offline, err)
		}
	}
	for name, bad := range map[string]string{"HF_ENDPOINT": "huggingface.co", "HF_TOKEN": "a\nb"} {
		if _, err := FromEnv(func(n string) string { return map[string]string{name: bad}[n] }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%q: %v", name, bad, err)
		}
	}
}

// Sent on to the same name with another scheme or port, to a subdomain or back: only the endpoint itself gets the token.
func TestRedirectKeepsTheToken(t *testing.T) {
	o := DefaultOptions()
	o.Endpoint, o.Token = "https://hub.example", "hf_x"
	c := client(t, o)
	ask := func(address string) *http.Request {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer hf_x") // as the standard library copies it in some cases
		return req
	}
	first := ask("https://hub.example/a")
	for address, want := range map[string]string{
		"https://hub.example/b": "Bearer hf_x", "https://cdn.hub.example/b": "", "https://hub.example:444/b": "", "https://evil.example/b": "", "https://hub.example.evil.example/b": "",
	} {
		req := ask(address)
		if err := c.redirect(req, []*http.Request{first}); err != nil || req.Header.Get("Authorization") != want {
			t.Errorf("%s: %q, %v", address, req.Header.Get("Authorization"), err)
		}
	}
	o.Endpoint = "http://hub.example"
	upgraded := ask("https://hub.example/b")
	if err := client(t, o).redirect(upgraded, []*http.Request{ask("http://hub.example/a")}); err != nil || upgraded.Header.Get("Authorization") != "" {
		t.Errorf("from http to https: %q, %v", upgraded.Header.Get("Authorization"), err)
	}
	if err := c.redirect(ask("http://hub.example/b"), []*http.Request{first}); err == nil {
		t.Error("sent on from https to http without an error")
	}
}

func named(list ...string) (out []File) {
	for _, n := range list {
		out = append(out, File{Path: n})
	}
	return out
}

func TestChoose(t *testing.T) {
	llama := named("config.json", "generation_config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json",
		"consolidated.safetensors", "original/consolidated.00.pth", "original/tokenizer.model", "tokenizer.json", "LICENSE.txt", "README.md", "USE_POLICY.md", "tokenizer_config.json")
	needed := "config.json generation_config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json tokenizer.json LICENSE.txt tokenizer_config.json"
	data := named("README.md", "data/train-00000.parquet", "data/test.jsonl", "script.py", "img/a.png")
	for _, c := range []struct {
		dataset bool
		all     []File
		s       Selection
		want    string
	}{
		{false, llama, Selection{}, needed},
		{false, llama, Selection{Exclude: []string{"*.safetensors*", "LICENSE*"}}, ""},
		{false, llama, Selection{Include: []string{"original/"}}, "original/consolidated.00.pth original/tokenizer.model"},
		{false, llama, Selection{Include: []string{"model-0000[!1]-*", "config.jso?"}}, "config.json model-00002-of-00002.safetensors"},
		{false, named("adapter_config.json", "adapter_model.safetensors"), Selection{}, "adapter_config.json adapter_model.safetensors"},
		{false, named("config.json", "weights.safetensors"), Selection{}, "config.json weights.safetensors"},
		{true, data, Selection{}, "README.md data/train-00000.parquet data/test.jsonl"},
	} {
		got, err := c.s.choose(Repo{Name: "a/b", Dataset: c.dataset}, c.all)
		var names []string
		for _, f := range got {
			names = append(names, f.Path)
		}
		if strings.Join(names, " ") != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %v, %v", c.s, names, err)
		}
	}
	if _, err := (Selection{Include: []string{"[a"}}).choose(Repo{Name: "a/b"}, llama); err == nil || !strings.Contains(err.Error(), "is no pattern") {
		t.Errorf("a broken pattern: %v", err)
	}
}

// A repository without safetensors says what it has instead.
func TestNoWeights(t *testing.T) {
	for want, all := range map[string][]File{
		"--include '*Q8_0.gguf'": named("config.json", "m.Q8_0.gguf"), "PyTorch": named("config.json", "pytorch_model.bin"), "--dataset": named("config.json", "README.md"), "they are a.txt": named("a.txt"),
	} {
		if _, err := (Selection{}).choose(Repo{Name: "a/b"}, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", all, err)
		}
	}
}

func TestModel(t *testing.T) {
	s, _ := start(t)
	cache := t.TempDir()
	env := func(name string) string {
		return map[string]string{"HF_HOME": cache, "HF_ENDPOINT": s.URL}[name]
	}
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{tiny: "no file or folder org/tiny", "hub:" + tiny: "rubicon pull org/tiny", "hub:nowhere": "give ORG/NAME"} {
		if _, err := Model(path, env); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for _, path := range []string{"nowhere", "./a/b", "/a/b", "a/b/c", "model.gguf"} {
		if got, err := Model(path, env); got != path || err != nil {
			t.Errorf("%s became %q, %v", path, got, err)
		}
	}
	o, err := FromEnv(env)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{tiny, tiny + "@main", "hub:" + tiny} {
		if got, err := Model(path, env); got != dir || err != nil {
			t.Errorf("%s became %q, %v; want %s", path, got, err, dir)
		}
	}
	if err := os.MkdirAll("org/tiny", 0o755); err != nil { // a folder of that name goes first
		t.Fatal(err)
	}
	if got, err := Model(tiny, env); got != tiny || err != nil {
		t.Errorf("with a folder there: %q, %v", got, err)
	}
	if got, err := Model("hub:"+tiny, env); got != dir || err != nil {
		t.Errorf("with a folder there, hub:%s became %q, %v", tiny, got, err)
	}
}

// Lines come at the files' ends and every five seconds.
func TestProgress(t *testing.T) {
	s, _ := start(t)
	o := options(t, s)
	var out bytes.Buffer
	o.Console, o.Jobs = &out, 1
	now := time.Unix(0, 0)
	o.Now = func() time.Time { now = now.Add(3 * time.Second); return now }
	if _, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"config.json: 6 B\n", "model.safetensors: 300 kB\n", " of 305 kB, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestBytes(t *testing.T) {
	var got []string
	for _, n := range []int64{0, 999, 1000, 1050, 99_949, 99_951, 999_499, 999_501, 3_630_000_000} {
		got = append(got, Bytes(n))
	}
	want := []string{"0 B", "999 B", "1.0 kB", "1.1 kB", "99.9 kB", "100 kB", "999 kB", "1.0 MB", "3.6 GB"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An answer that is no hub's says so.
func TestNoHub(t *testing.T) {
	s := hubtest.Start(t, nil)
	s.Fail(hubtest.Fault{WebPage: true})
	if _, _, err := client(t, options(t, s)).Files(context.Background(), parse(t, tiny)); err == nil || !strings.Contains(err.Error(), "is no hub") {
		t.Errorf("%v", err)
	}
}
