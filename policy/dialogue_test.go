package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

func openDialogue(t *testing.T, m *Model, adapter string, tokens int) *Dialogue {
	t.Helper()
	d, err := m.NewDialogue(adapter, tokens)
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

// A dialogue's answers have the bits of the whole text computed at once, whatever was said, cut off and taken back before,
// while another dialogue and Generate use the model. A wrong place in the cache, or keys of an answer that was taken back,
// would change them.
func TestDialogueIsTheWholeText(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		must(t, m.LoadAdapter("a", golden.Path("lora", "qwen2-all-plain", "adapter")))
		tuned, base := openDialogue(t, m, "a", 120), openDialogue(t, m, "", 120)
		p, opening := plain(9), []int32{5, 6, 7}
		text := map[*Dialogue][]int32{tuned: opening, base: opening}
		for turn := range 4 {
			for _, d := range []*Dialogue{tuned, base} {
				if turn == 2 { // the last exchange is taken back, and the first changes near its end
					text[d] = append(slices.Clone(text[d][:9]), 1, 2)
				}
				s, err := d.Continue(t.Context(), Request{Prompt: text[d], Stream: []uint64{3, uint64(turn)}}, p, nil)
				must(t, err)
				if len(s.Tokens) != 9 || s.Finish != FinishLength {
					t.Fatalf("turn %d: %d tokens, finish %q", turn, len(s.Tokens), s.Finish)
				}
				checkEpisode(t, m, Request{Prompt: text[d]}, whole(s), ForwardOptions{Adapter: d.adapter, Temperature: 1})
				text[d] = append(append(slices.Clone(text[d]), s.Tokens...), 40, 41, int32(turn))
			}
			generate(t, m, once([][]int32{{9, 8, 7}}), GenerateOptions{SamplingParams: p})
		}
		if slices.Equal(text[tuned], text[base]) {
			t.Error("with the adapter and without it the same was said")
		}
	})
}

// whole is a sample as checkEpisode wants it.
func whole(s Sample) Sample {
	s.Turns = []Turn{{0, len(s.Tokens)}}
	return s
}

// Greedy answers are transformers': the golden continuation, in three pieces, the prompt cut anew each time.
func TestDialogueGolden(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m, g := loadTiny(t, dev, "llama3", LoadOptions{}), tensors(t, "generate", "llama3")
		prompts, _ := unpad(g["prompt_ids"], g["prompt_mask"])
		want, firm := goldenRows(g["new_tokens"], 0)[0], firmLengths(g["top2_margin"])[0]
		d, text := openDialogue(t, m, "", 200), prompts[0]
		var heard []int32
		for _, n := range []int{1, 10, 21} {
			s, err := d.Continue(t.Context(), Request{Prompt: text}, greedy(n), func(id int32) { heard = append(heard, id) })
			must(t, err)
			text = append(slices.Clone(text), s.Tokens...)
		}
		checkTokens(t, "heard", heard, text[len(prompts[0]):])
		checkTokens(t, "said", heard[:firm], want[:firm])
	})
}

// Only what is new is fed to the model: of a text that goes on, its new tokens; of one that is asked again, the last.
func TestDialogueFeedsWhatIsNew(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	d := openDialogue(t, m, "", 64)
	s, err := d.Continue(t.Context(), Request{Prompt: []int32{5, 6, 7, 8}}, plain(3), nil)
	must(t, err)
	text := append([]int32{5, 6, 7, 8}, s.Tokens...)
	for _, c := range []struct {
		prompt []int32
		kept   int
	}{
		{append(slices.Clone(text), 1, 2), 6}, // the last token that was drawn was not fed
		{text[:5], 4},
		{[]int32{5, 6, 900}, 2},
		{[]int32{900, 6, 7}, 0},
	} {
		o := GenerateOptions{SamplingParams: plain(3)}
		next, err := d.sequence(&Request{Prompt: c.prompt}, &o)
		must(t, err)
		if next.fed != c.kept {
			t.Errorf("%v: %d tokens are kept, want %d", c.prompt, next.fed, c.kept)
		}
	}
}

// An answer that is stopped is returned as far as it got, and the dialogue goes on behind it.
func TestDialogueStops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev device.Device) {
		m := loadTiny(t, dev, "qwen2", LoadOptions{})
		d := openDialogue(t, m, "", 64)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		s, err := d.Continue(ctx, Request{Prompt: []int32{5, 6}}, plain(20), func(int32) {
			if n++; n == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || len(s.Tokens) != 3 || s.Finish != "" {
			t.Fatalf("stopped after 3 tokens: %d tokens, finish %q, %v", len(s.Tokens), s.Finish, err)
		}
		text := append([]int32{5, 6}, s.Tokens...)
		more, err := d.Continue(t.Context(), Request{Prompt: text}, plain(5), nil)
		must(t, err)
		checkEpisode(t, m, Request{Prompt: text}, whole(more), ForwardOptions{Temperature: 1})
	})
}

// What has no room is refused by name, and an answer ends where the room does.
func TestDialogueFull(t *testing.T) {
	m := loadTiny(t, openCPU(t), "qwen2", LoadOptions{})
	d := openDialogue(t, m, "", 8)
	s, err := d.Continue(t.Context(), Request{Prompt: []int32{1, 2, 3}}, plain(20), nil)
	must(t, err)
	if len(s.Tokens) != 5 || s.Finish != FinishLength {
		t.Errorf("%d tokens, finish %q, want 5 and %q", len(s.Tokens), s.Finish, FinishLength)
	}
	if _, err := d.Continue(t.Context(), Request{Prompt: make([]int32, 8)}, plain(1), nil); !errors.Is(err, ErrDialogueFull) {
		t.Errorf("a full dialogue: %v", err)
	}
	for _, tokens := range []int{1, m.cfg.MaxPositions + 1} {
		_, err := m.NewDialogue("", tokens)
		wantError(t, err, fmt.Sprint(tokens), fmt.Sprint(m.cfg.MaxPositions))
	}
	_, err = m.NewDialogue("nobody", 8)
	wantError(t, err, "nobody")
}
