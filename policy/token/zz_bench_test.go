//go:build slow

package token

import (
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func benchText(kind string) []string {
	var out []string
	chunk := func(s string) {
		for i := 0; i < len(s); i += 4000 {
			out = append(out, strings.ToValidUTF8(s[i:min(len(s), i+4000)], ""))
		}
	}
	switch kind {
	case "code", "english":
		pat := "/usr/local/go/src/*/*.go"
		if kind == "english" {
			pat = "/root/go/pkg/mod/*/*/*/*.md"
		}
		fs, _ := filepath.Glob(pat)
		n := 0
		for _, f := range fs {
			b, _ := os.ReadFile(f)
			chunk(string(b))
			if n += len(b); n > 4e6 {
				break
			}
		}
	case "cjk":
		r := rand.New(rand.NewSource(1))
		for range 300 {
			var b strings.Builder
			for range 1000 {
				b.WriteRune(rune(0x4e00 + r.Intn(3000)))
			}
			out = append(out, b.String())
		}
	case "word":
		r := rand.New(rand.NewSource(1))
		b := make([]byte, 1e6)
		for i := range b {
			b[i] = byte('a' + r.Intn(26))
		}
		out = []string{string(b)}
	case "aaa":
		out = []string{strings.Repeat("a", 1e6)}
	}
	return out
}

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func BenchmarkEnc(b *testing.B) {
	for _, kind := range []string{"english", "code", "cjk", "word", "aaa"} {
		texts := benchText(kind)
		n := 0
		for _, t := range texts {
			n += len(t)
		}
		for _, cold := range []bool{false, true} {
			name := kind
			if cold {
				name += "-cold"
			}
			b.Run(name, func(b *testing.B) {
				tok := load(b, realDir(b, "qwen3"))
				b.SetBytes(int64(n))
				b.ReportAllocs()
				b.ResetTimer()
				c0 := cpu()
				for range b.N {
					if cold {
						tok.cache = newWordCache()
					}
					for _, t := range texts {
						tok.Encode(t, EncodeOptions{})
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/1e6/(cpu()-c0), "MB/cpu-s")
			})
		}
	}
}
