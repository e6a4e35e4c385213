//go:build slow

package serve

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/internal/embedded"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// TestLoad keeps 200 streams going on the embedded model, for as long as RUBICON_TEST_LOAD says, else five seconds. Every tenth is left
// in the middle. None may fail, all clients have to get on alike, and neither memory nor cache may be lost.
func TestLoad(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("RUBICON_TEST_LOAD"))
	if err != nil {
		span = 5 * time.Second
	}
	b := start(t, func(o *Options) {
		dir, err := embedded.Path("embedded:quickstart")
		must(t, err)
		m, err := policy.Load(context.Background(), o.Model.Device(), dir, policy.LoadOptions{})
		must(t, err)
		must(t, o.Model.Close())
		o.Model = m
		o.Tokenizer, err = token.Load(dir)
		must(t, err)
		o.EOS = []int32{o.Tokenizer.EOS()}
		o.Session, o.MaxQueue = policy.SessionOptions{KVTokens: 1 << 15, MaxBatch: 64}, 1000
	})
	const clients = 200
	transport := &http.Transport{MaxConnsPerHost: clients, MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var answered [clients]atomic.Int64
	var left, failed atomic.Int64
	one := func(who, n int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body := fmt.Sprintf(`{"messages": [{"role": "user", "content": "Write about number %d."}], "max_tokens": 48, "stream": true}`, n%17)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/chat/completions", strings.NewReader(body))
		must(t, err)
		answer, err := client.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			failed.Add(1)
			return
		}
		defer answer.Body.Close()
		lines, last, seen := bufio.NewScanner(answer.Body), "", 0
		for lines.Scan() {
			if lines.Text() != "" {
				last = lines.Text()
			}
			if seen++; (who+n)%10 == 0 && seen > 3 {
				left.Add(1)
				return
			}
		}
		if last != "data: [DONE]" {
			failed.Add(1)
			return
		}
		answered[who].Add(1)
	}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	var all sync.WaitGroup
	end := time.Now().Add(span)
	warm := make(chan float64, 1)
	for who := range clients {
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				one(who, n)
				if who == 0 && n == 1 {
					warm <- heap()
				}
			}
		})
	}
	all.Wait()
	total, least, most := int64(0), answered[0].Load(), int64(0)
	for i := range answered {
		n := answered[i].Load()
		total, least, most = total+n, min(least, n), max(most, n)
	}
	b.free(t)
	before, after := <-warm, heap()
	t.Logf("%d answers in %v, %d left in the middle, a client has %d to %d, heap %.1f MB when warm, %.1f MB at the end", total, span, left.Load(), least, most, before, after)
	if failed.Load() > 0 || total == 0 || left.Load() == 0 {
		t.Errorf("%d failed, %d answered, %d left", failed.Load(), total, left.Load())
	}
	if most > 3*least+10 {
		t.Errorf("one client got %d answers, another %d", least, most)
	}
	if after > before+50 {
		t.Errorf("the heap grew from %.1f to %.1f MB", before, after)
	}
}
