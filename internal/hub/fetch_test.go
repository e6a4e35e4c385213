package hub

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

// Wherever connections are cut, the bytes are the repository's in the end, and none is fetched twice.
func TestCutConnections(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		s, repo := start(t)
		var cuts []hubtest.Fault
		for range 4 {
			cuts = append(cuts, hubtest.Fault{Host: "store", Times: 1, Cut: 1 + random.IntN(90_000)})
		}
		s.Fail(cuts...)
		o := options(t, s)
		o.Tries = 2 // in a row that bring nothing
		dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, dir, repo)
		next := 0
		for i, r := range weights(s) {
			want := fmt.Sprintf("bytes=%d-", next)
			if i > 0 && r.Range != want {
				t.Errorf("request %d asked for %q, want %q", i, r.Range, want)
			}
			if i < len(cuts) {
				next += cuts[i].Cut
			}
		}
	}
}

// weights are the requests to the store, for model.safetensors alone.
func weights(s *hubtest.Server) (list []hubtest.Seen) {
	for _, r := range s.Seen() {
		if r.Host == "store" {
			list = append(list, r)
		}
	}
	return list
}

// What passes by itself is waited out, and the right bytes land.
func TestFaultsThatPass(t *testing.T) {
	for name, faults := range map[string][]hubtest.Fault{
		"500 and 503":               {{Times: 1, Status: 500}, {Times: 2, Status: 503}},
		"429":                       {{Host: "hub", Times: 1, Status: 429, RetryAfter: "7"}},
		"429 at the store":          {{Host: "store", Times: 1, Status: 429}},
		"hung":                      {{Times: 1, Hang: true}},
		"slow":                      {{Host: "store", Times: 2, Drip: 1000}},
		"cut, range ignored":        {{Host: "store", Times: 1, Cut: 1000}, {Host: "store", Times: 1, NoRange: true}},
		"cut, wrong part":           {{Host: "store", Times: 1, Cut: 1000}, {Host: "store", Times: 1, WrongRange: true}},
		"cut, other version's name": {{Host: "store", Times: 1, Cut: 1000, NoETag: true}, {Host: "store", Times: 1}},
		"wrong bytes once":          {{Host: "store", Times: 1, Spoil: true}},
		"wrong bytes, then cut":     {{Host: "store", Times: 1, Spoil: true}, {Host: "store", Times: 1, Cut: 5}},
		"too short":                 {{Host: "store", Times: 1, Short: true}},
		"too long":                  {{Host: "store", Times: 1, Long: true}},
		"too long without a length": {{Host: "store", Times: 1, Long: true, Chunked: true}},
		"without a length":          {{Host: "store", Chunked: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s, repo := start(t)
			s.Fail(faults...)
			o := options(t, s)
			o.Stall = 200 * time.Millisecond
			var slept pauses
			o.Sleep = slept.sleep
			dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
			if err != nil {
				t.Fatal(err)
			}
			holds(t, dir, repo)
			if name == "429" && slept.list[0] < 7*time.Second {
				t.Errorf("slept %v though the server asked for 7 s", slept.list)
			}
		})
	}
}

// A connection that is slow but alive is kept for as long as it takes.
func TestSlowIsNotStalled(t *testing.T) {
	s, repo := start(t)
	s.Fail(hubtest.Fault{Host: "store", Pace: 60 * time.Millisecond})
	o := options(t, s)
	o.Stall = 200 * time.Millisecond
	dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, dir, repo)
	if n := len(weights(s)); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// What stays is an error that says what is wrong, soon, and nothing gets its name.
func TestFaultsThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		fault hubtest.Fault
		want  string
	}{
		"wrong bytes":    {hubtest.Fault{Host: "store", Spoil: true}, "is not the file: its SHA-256 is"},
		"too short":      {hubtest.Fault{Host: "store", Short: true}, "the server has no more of it"},
		"too long":       {hubtest.Fault{Host: "store", Long: true}, "more than 300000 bytes came"},
		"unavailable":    {hubtest.Fault{Host: "store", Status: 503}, "tried 6 times: HTTP 503"},
		"forbidden":      {hubtest.Fault{Host: "store", Status: 403}, "HTTP 403"},
		"not found":      {hubtest.Fault{Host: "store", Status: 404}, "HTTP 404"},
		"too long away":  {hubtest.Fault{Host: "store", Status: 429, RetryAfter: "86400"}, "asks to come back in 24h"},
		"compressed":     {hubtest.Fault{Host: "store", Gzip: true}, "the server sends it as gzip"},
		"round in rings": {hubtest.Fault{Host: "hub", Path: "resolve", Redirect: "/org/tiny/resolve/main/config.json"}, "sent on more than 10 times"},
		"never anything": {hubtest.Fault{Host: "store", Hang: true}, "nothing came for"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t)
			s.Fail(c.fault)
			o := options(t, s)
			o.Stall = 100 * time.Millisecond
			_, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{Include: []string{"*.safetensors"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := landed(t, o.Cache); len(got) > 0 {
				t.Errorf("landed: %v", got)
			}
			if n := len(weights(s)); n > 12 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A process that is gone leaves what it had; the next one asks for the rest. If that was spoiled, all is fetched anew.
func TestAnotherProcessGoesOn(t *testing.T) {
	for _, spoiled := range []bool{false, true} {
		s, repo := start(t)
		s.Fail(hubtest.Fault{Host: "store", Times: 1, Drip: 123_456})
		o := options(t, s)
		ctx, kill := context.WithCancel(context.Background())
		part := filepath.Join(o.Cache, "models--org--tiny", "blobs", repo.Hash("model.safetensors")+partialSuffix)
		go func() {
			for sizeOf(part) < 123_456 {
				time.Sleep(time.Millisecond)
			}
			kill()
		}()
		if _, err := client(t, o).Pull(ctx, parse(t, tiny), Selection{}); err == nil {
			t.Fatal("no error of what was interrupted")
		}
		if spoiled {
			b, _ := os.ReadFile(part)
			b[17] ^= 1
			if err := os.WriteFile(part, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		before := len(weights(s))
		dir, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{})
		if err != nil {
			t.Fatal(err)
		}
		holds(t, dir, repo)
		got := weights(s)[before:]
		if got[0].Range != "bytes=123456-" || spoiled != (len(got) == 2) {
			t.Errorf("spoiled %v: asked for %+v", spoiled, got)
		}
	}
}

// plain fetches a file of which nothing is known.
func plain(t *testing.T, o Options, address, path string) error {
	t.Helper()
	return client(t, o).FetchAll(context.Background(), []Download{{URL: address, Name: filepath.Base(path), Path: path, Size: -1}})
}

// A file without a known hash is resumed by another process only if the server says that it is still the same version.
func TestPlainFileIsResumedByVersion(t *testing.T) {
	old, changed := noise(5, 50_000), noise(6, 50_000)
	for name, c := range map[string]struct {
		fault hubtest.Fault
		now   []byte
		Range string
	}{
		"the same":       {hubtest.Fault{Path: "/plain/", Cut: 20_000, Times: 1}, old, "bytes=20000-"},
		"another":        {hubtest.Fault{Path: "/plain/", Cut: 20_000, Times: 1}, changed, "bytes=20000-"},
		"without a name": {hubtest.Fault{Path: "/plain/", Cut: 20_000, Times: 1, NoETag: true}, changed, ""},
		"a weak name":    {hubtest.Fault{Path: "/plain/", Cut: 20_000, Times: 1, Weak: true}, changed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t)
			o := options(t, s)
			o.Tries = 1
			path := filepath.Join(t.TempDir(), "sub", "data.bin")
			address := s.Plain("data.bin", old)
			s.Fail(c.fault)
			if err := plain(t, o, address, path); err == nil {
				t.Fatal("no error of a cut connection and one try")
			}
			s.Plain("data.bin", c.now)
			if err := plain(t, o, address, path); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, c.now) {
				t.Errorf("%v: not the bytes of the version that is served", err)
			}
			seen := s.Seen()
			if last := seen[len(seen)-1]; last.Range != c.Range {
				t.Errorf("asked for %q, want %q", last.Range, c.Range)
			}
			if left := tree(t, filepath.Dir(path)); len(left) != 1 {
				t.Errorf("left over: %d files", len(left))
			}
		})
	}
}

// A part that is not the one that was asked for is not put behind what is there.
func TestWrongPartOfPlainFile(t *testing.T) {
	s, _ := start(t)
	content := noise(5, 50_000)
	address := s.Plain("data.bin", content)
	s.Fail(hubtest.Fault{Path: "/plain/", Cut: 20_000, Times: 1}, hubtest.Fault{Path: "/plain/", WrongRange: true, Times: 1})
	path := filepath.Join(t.TempDir(), "data.bin")
	if err := plain(t, options(t, s), address, path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%v: not the bytes that are served", err)
	}
}

// A page that asks whether one is sure is not taken for the data.
func TestWebPageIsNoFile(t *testing.T) {
	s, _ := start(t)
	address := s.Plain("data.zip", noise(1, 100))
	s.Fail(hubtest.Fault{WebPage: true})
	path := filepath.Join(t.TempDir(), "data.zip")
	if err := plain(t, options(t, s), address, path); err == nil || !strings.Contains(err.Error(), "is a web page") {
		t.Errorf("%v", err)
	}
	if exists(path, -1) {
		t.Error("the page landed")
	}
}

// What is there and right is left alone, what is wrong is fetched again.
func TestFetchAllChecksWhatIsThere(t *testing.T) {
	s, _ := start(t)
	content := []byte("hello\n")
	d := Download{
		URL: s.Plain("x", content), Name: "x", Path: filepath.Join(t.TempDir(), "x"), Size: 6,
		Digest: Digest{SHA256, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"},
	}
	for i, there := range []string{"hello\n", "hallo\n", "hello"} {
		if err := os.WriteFile(d.Path, []byte(there), 0o644); err != nil {
			t.Fatal(err)
		}
		before := len(s.Seen())
		if err := client(t, options(t, s)).FetchAll(context.Background(), []Download{d}); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(d.Path); string(got) != "hello\n" || (len(s.Seen()) > before) != (i > 0) {
			t.Errorf("with %q there: %q after %d requests", there, got, len(s.Seen())-before)
		}
	}
}

// Addresses of stores hold what opens them: neither errors nor lines show it.
func TestSignedAddressesStayHidden(t *testing.T) {
	s, _ := start(t)
	s.Fail(hubtest.Fault{Host: "hub", Path: "resolve", Redirect: s.Store + "/x?Signature=secret"},
		hubtest.Fault{Host: "store", Times: 1, Status: 503}, hubtest.Fault{Host: "store", Times: 1, Hang: true}, hubtest.Fault{Host: "store", Status: 403})
	o := options(t, s)
	var lines bytes.Buffer
	o.Console, o.Stall = &lines, 100*time.Millisecond
	_, err := client(t, o).Pull(context.Background(), parse(t, tiny), Selection{Include: []string{"config.json"}})
	if err == nil || !strings.Contains(err.Error(), "HTTP 403") || strings.Contains(err.Error()+lines.String(), "secret") || strings.Count(lines.String(), "again in") != 2 {
		t.Errorf("%v\n%s", err, lines.String())
	}
}
