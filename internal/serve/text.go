package serve

import (
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// choice is one continuation as it comes.
type choice struct {
	stream *token.Stream
	stop   []string
	text   string // all of it so far, without a stop string
	sent   int    // bytes of text that were handed out
	tokens []policy.Event
	told   int // tokens that were handed out
	finish string
}

// finishReasons are OpenAI's names.
var finishReasons = map[string]string{policy.FinishEOS: "stop", policy.FinishStop: "stop", policy.FinishLength: "length"}

// push takes the next token.
func (c *choice) push(e policy.Event) {
	c.tokens = append(c.tokens, e)
	c.text += c.stream.Push(e.Token)
	if e.Finish == "" {
		return
	}
	c.text += c.stream.Flush()
	c.finish = finishReasons[e.Finish]
	if e.Finish == policy.FinishStop {
		at := len(c.text)
		for _, s := range c.stop {
			if i := strings.Index(c.text, s); i >= 0 {
				at = min(at, i)
			}
		}
		c.text = c.text[:at]
	}
}

// delta is the text that is certain and was not handed out yet: what may be the beginning of a stop string waits.
func (c *choice) delta() string {
	end := len(c.text)
	if c.finish == "" {
		end -= c.open()
	}
	if end <= c.sent {
		return ""
	}
	text := c.text[c.sent:end]
	c.sent = end
	return text
}

// open is the length of the longest end of the text that a stop string begins with.
func (c *choice) open() int {
	longest := 0
	for _, s := range c.stop {
		for n := min(len(s)-1, len(c.text)); n > longest; n-- {
			if strings.HasSuffix(c.text, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// news are the tokens that were not handed out yet.
func (c *choice) news() []policy.Event {
	n := c.tokens[c.told:]
	c.told = len(c.tokens)
	return n
}

// ended says whether all choices have.
func ended(all []*choice) bool {
	return !slices.ContainsFunc(all, func(c *choice) bool { return c.finish == "" })
}
