package token
import ("testing";"os";"strconv";"strings";"github.com/sugarme/tokenizer/normalizer")
func TestZZ(t *testing.T) {
	b,_ := os.ReadFile("testdata/fuzz/FuzzRoundTrip/707758a77b4c44fc")
	q := strings.TrimSpace(strings.Split(string(b),"\n")[1]); q = q[len("string("):len(q)-1]
	s, _ := strconv.Unquote(q)
	t.Logf("%+q", s)
	for i:=0;i<3;i++ {
	n, err := pipelineNormalizer{nfc()}.Normalize(normalizer.NewNormalizedFrom(s))
		t.Logf("%+q -> %+q want %+q %v", s, n.GetNormalized(), nfc().String(s), err)
	m := slice(normalizer.NewNormalizedFrom(s), 0, len(s))
	n, err = pipelineNormalizer{nfc()}.Normalize(m)
		t.Logf("%+q -> %+q want %+q %v", s, n.GetNormalized(), nfc().String(s), err)
	}
	tok := tiny(t, "qwen2")
	e := throughPipeline(t, tok.Pipeline(), s, false)
	t.Logf("%q %v", e.Tokens, e.Ids)
	t.Logf("%v", tok.Encode(s, EncodeOptions{}))
}
