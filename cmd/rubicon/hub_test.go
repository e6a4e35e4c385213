package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/internal/hub/datasets"
	"github.com/rubicon-rl/rubicon/internal/hub/hubtest"
)

// TestHubScripts runs the transcripts of what downloads, against a hub on this machine.
func TestHubScripts(t *testing.T) {
	tiny := hubtest.Repo{Files: map[string][]byte{}, LFS: []string{"model.safetensors"}}
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		content, err := os.ReadFile(golden.Path("models", "qwen2", name))
		if err != nil {
			t.Fatal(err)
		}
		tiny.Files[name] = content
	}
	big := hubtest.Repo{Files: map[string][]byte{"config.json": []byte("{}"), "model.safetensors": noise(1_000_000)}, LFS: []string{"model.safetensors"}}
	data := hubtest.Repo{Dataset: true, Gated: true, Files: map[string][]byte{"gpqa_diamond.csv": noise(100_000)}}
	s := hubtest.Start(t, map[string]hubtest.Repo{"org/tiny": tiny, "org/big": big, "Idavidrein/gpqa": data})
	s.Fail(hubtest.Fault{Host: "store", Path: big.Hash("model.safetensors"), Times: 1, Drip: 400_000}, hubtest.Fault{Path: "gpqa_diamond.csv", Times: 1, Drip: 50_000})
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/pull.txtar", "testdata/dataget.txtar"},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HF_ENDPOINT", s.URL)
			e.Setenv("HF_HOME", e.Getenv("WORK")+"/hf")
			e.Setenv("HF_TOKEN", "")
			e.Setenv("TINY", "hf/hub/models--org--tiny/snapshots/"+tiny.Commit())
			e.Setenv("BIG", "hf/hub/models--org--big/blobs/"+big.Hash("model.safetensors"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"grown": grown},
	})
}

// grown FILE BYTES waits until a file has so many bytes.
func grown(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() == want {
			return
		} else if time.Since(began) > time.Minute {
			ts.Fatalf("%s does not get %d bytes: %v, %v", args[0], want, info, err)
		}
	}
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The papers' configurations train and evaluate on files that rubicon data get makes, under the names that it gives them.
func TestConfigsNameWhatDataGetMakes(t *testing.T) {
	made := map[string]bool{}
	for _, s := range datasets.All() {
		for _, out := range s.Outputs {
			made[filepath.ToSlash(filepath.Join("data", s.Name, out.File))] = true
		}
	}
	for base, domains := range map[string][]string{"amaris/paper": {"amaris/science", "amaris/medicine", "amaris/instruction", "amaris/writing"}, "arco/arco": {"arco/hotpotqa", "arco/2wiki", "arco/musique"}} {
		for _, domain := range domains {
			path := func(name string) string { return filepath.Join("..", "..", "configs", name+".yaml") }
			c, _, err := configs.Load([]string{path(base), path(domain)}, []string{"model.path=x"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(c.Data.TrainFiles, c.Eval.Files...) {
				if !made[f] {
					t.Errorf("%s: no data set makes %s, only %s", domain, f, fmt.Sprint(made))
				}
			}
		}
	}
}
