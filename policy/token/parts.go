package token

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dlclark/regexp2"
)

// part is one step of the pipeline that tokenizer.json describes.
type part struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	PreTokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	AddPrefixSpace   bool  `json:"add_prefix_space"`  // ByteLevel
	UseRegex         *bool `json:"use_regex"`         // ByteLevel
	IndividualDigits bool  `json:"individual_digits"` // Digits
	Pattern          struct {
		Regex  *string
		String *string
	} `json:"pattern"` // Split
	Behavior string `json:"behavior"` // Split
	Invert   bool   `json:"invert"`   // Split

	Single        []pieceJSON `json:"single"` // TemplateProcessing
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// pieceJSON is one piece of a post-processor's template.
type pieceJSON struct {
	SpecialToken *struct{ ID string }
	Sequence     *struct{ ID string }
}

// readPart reads a part; a missing one has no type.
func readPart(raw json.RawMessage) (p part, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return p, nil
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, err
	}
	if p.Type == "" {
		return p, fmt.Errorf("%.60s has no type", raw)
	}
	return p, nil
}

// readNormalizer tells whether text is brought into NFC, the one normaliser that byte-level BPE tokenizers have.
func readNormalizer(raw json.RawMessage) (nfc bool, err error) {
	p, err := readPart(raw)
	if err != nil {
		return false, fmt.Errorf("normalizer: %w", err)
	}
	switch p.Type {
	case "":
		return false, nil
	case "NFC":
		return true, nil
	case "Sequence":
		for _, n := range p.Normalizers {
			one, err := readNormalizer(n)
			if err != nil {
				return false, err
			}
			nfc = nfc || one
		}
		return nfc, nil
	}
	return false, fmt.Errorf("normalizer %q is not supported: NFC, Sequence and none are", p.Type)
}

// The regular expressions that have a splitter of their own.
const (
	qwenPattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	llamaPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gptPattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// readSplitters are the steps of the pre-tokenizer, which has to end in bytes.
func readSplitters(raw json.RawMessage) ([]splitter, error) {
	list, bytes, err := appendSplitters(nil, raw)
	if err == nil && !bytes {
		err = errors.New("it does not end in ByteLevel, so this is not a byte-level tokenizer")
	}
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	return list, nil
}

// appendSplitters appends the steps of a part; bytes tells whether it turns text into bytes, after which nothing can
// come.
func appendSplitters(list []splitter, raw json.RawMessage) (out []splitter, bytes bool, err error) {
	p, err := readPart(raw)
	if err != nil {
		return nil, false, err
	}
	switch p.Type {
	case "":
		return list, false, nil
	case "Sequence":
		for _, one := range p.PreTokenizers {
			if bytes {
				return nil, false, errors.New("a step behind ByteLevel is not supported")
			}
			if list, bytes, err = appendSplitters(list, one); err != nil {
				return nil, false, err
			}
		}
		return list, bytes, nil
	case "ByteLevel":
		if p.AddPrefixSpace {
			list = append(list, spacePrefix{})
		}
		if p.UseRegex == nil || *p.UseRegex {
			list = append(list, classicSplitter{newScanner()})
		}
		return list, true, nil
	case "Digits":
		return append(list, digitSplitter{digits(), !p.IndividualDigits}), false, nil
	case "Split":
		s, err := p.split()
		return append(list, s), false, err
	}
	return nil, false, fmt.Errorf("step %q is not supported: Sequence, Split, Digits and ByteLevel are", p.Type)
}

// split is the splitter of a Split part.
func (p *part) split() (splitter, error) {
	isolated := p.Behavior == "Isolated"
	if !isolated && p.Behavior != "Removed" {
		return nil, fmt.Errorf("behavior %q of Split is not supported: Isolated and Removed are", p.Behavior)
	}
	pattern := ""
	switch {
	case p.Pattern.Regex != nil:
		pattern = *p.Pattern.Regex
	case p.Pattern.String != nil && *p.Pattern.String != "":
		pattern = regexp2.Escape(*p.Pattern.String)
	default:
		return nil, errors.New("a Split has no pattern")
	}
	if isolated || p.Invert { // these match everything, so there is nothing between the matches
		switch pattern {
		case qwenPattern:
			return modernSplitter{newScanner(), 1}, nil
		case llamaPattern:
			return modernSplitter{newScanner(), 3}, nil
		case gptPattern:
			return classicSplitter{newScanner()}, nil
		}
	}
	re, err := regexp2.Compile(pattern, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("pattern of Split: %w", err)
	}
	return regexSplitter{re, isolated || p.Invert, isolated || !p.Invert, classes()}, nil
}

// checkDecoder refuses what does not turn tokens back into bytes.
func checkDecoder(raw json.RawMessage) error {
	p, err := readPart(raw)
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if p.Type == "Sequence" && len(p.Decoders) == 1 {
		return checkDecoder(p.Decoders[0])
	}
	if p.Type != "ByteLevel" {
		return fmt.Errorf("decoder %q is not supported: ByteLevel is", p.Type)
	}
	return nil
}

// readPostProcessor is what goes before and behind a text with special tokens added.
func readPostProcessor(raw json.RawMessage, v *vocabulary) (prefix, suffix []int32, err error) {
	p, err := readPart(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("post_processor: %w", err)
	}
	switch p.Type {
	case "", "ByteLevel": // only moves offsets
		return nil, nil, nil
	case "Sequence":
		for _, one := range p.Processors {
			before, behind, err := readPostProcessor(one, v)
			if err != nil {
				return nil, nil, err
			}
			prefix, suffix = append(before, prefix...), append(suffix, behind...)
		}
		return prefix, suffix, nil
	case "TemplateProcessing":
		return p.template(v)
	}
	return nil, nil, fmt.Errorf("post_processor %q is not supported: TemplateProcessing, ByteLevel and Sequence are", p.Type)
}

// template splits the template of a TemplateProcessing at the text.
func (p *part) template(v *vocabulary) (prefix, suffix []int32, err error) {
	texts := 0
	for _, piece := range p.Single {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			texts++
		case piece.SpecialToken != nil:
			token, ok := p.SpecialTokens[piece.SpecialToken.ID]
			for _, id := range token.IDs {
				ok = ok && id >= 0 && int(id) < len(v.token)
			}
			if !ok {
				return nil, nil, fmt.Errorf("post_processor: special token %q has no valid ids", piece.SpecialToken.ID)
			}
			if texts == 0 {
				prefix = append(prefix, token.IDs...)
			} else {
				suffix = append(suffix, token.IDs...)
			}
		default:
			return nil, nil, errors.New("post_processor: a piece is neither a special token nor the text (sequence A)")
		}
	}
	if texts != 1 {
		return nil, nil, fmt.Errorf("post_processor: the text stands there %d times", texts)
	}
	return prefix, suffix, nil
}
