// Command rewardserver is an example of a reward server for reward.kind http. It prefers short answers: a completion of n
// words scores 1/(1+n/20), and one that was cut off cannot be scored.
//
//	go run ./scripts/rewardserver -addr localhost:9000
//
// and in the configuration
//
//	reward: {kind: http, options: {url: "http://localhost:9000/score"}}
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rubicon-rl/rubicon/rewards/http/wire"
)

// largest is the size up to which a request is read.
const largest = 64 << 20

func main() {
	addr := flag.String("addr", "localhost:9000", "address to listen on")
	flag.Parse()
	server := &http.Server{Addr: *addr, Handler: handler(os.Getenv("REWARD_TOKEN")), ReadHeaderTimeout: 10 * time.Second}
	log.Printf("scoring on http://%s/score", *addr)
	log.Fatal(server.ListenAndServe())
}

// handler serves POST /score. With a token it wants the header "Authorization: Bearer TOKEN".
func handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /score", func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "the header Authorization is not the expected one", http.StatusUnauthorized)
			return
		}
		var q wire.Request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, largest)).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if q.Version != wire.Version {
			http.Error(w, fmt.Sprintf("version %d is not known, only %d", q.Version, wire.Version), http.StatusBadRequest)
			return
		}
		results := make([]wire.Result, len(q.Items)) // an empty list for a request without items
		for i, item := range q.Items {
			results[i] = score(item)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"version": wire.Version, "results": results}); err != nil {
			log.Print(err)
		}
	})
	return mux
}

// score is the place for something more useful.
func score(item wire.Item) wire.Result {
	if item.Truncated {
		return wire.Result{ID: item.ID, Reason: "cut off"}
	}
	words := len(strings.Fields(item.Completion))
	value := 1 / (1 + float64(words)/20)
	return wire.Result{
		ID: item.ID, Score: &value, Reason: fmt.Sprintf("%d words", words),
		Parts: []wire.Part{{Name: "short", Credit: &value}},
	}
}
