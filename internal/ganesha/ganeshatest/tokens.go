package ganeshatest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// block is a block of the configuration.
type block struct {
	name    string
	options map[string]string
	blocks  []*block
}

// parseBlocks reads the blocks of a text. Nothing may be outside of them.
func parseBlocks(text string) ([]*block, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	root := &block{options: map[string]string{}}
	if _, err := parseBody(root, tokens, true); err != nil {
		return nil, err
	}
	if len(root.options) > 0 {
		return nil, fmt.Errorf("options outside of blocks: %v", root.options)
	}
	return root.blocks, nil
}

func tokenize(text string) ([]string, error) {
	var tokens []string
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\n':
			i++
		case c == '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return nil, errors.New("a comment without end")
			}
			i += end
		case strings.IndexByte("{}=;", c) >= 0:
			tokens = append(tokens, string(c))
			i++
		case c == '"':
			end := strings.IndexAny(text[i+1:], "\"\n\\")
			if end < 0 || text[i+1+end] != '"' {
				return nil, fmt.Errorf("a string without a plain end at byte %d", i)
			}
			tokens = append(tokens, text[i:i+end+2])
			i += end + 2
		default:
			end := strings.IndexAny(text[i:], " \n{}=;\"'\\#%$")
			if end <= 0 {
				return nil, fmt.Errorf("unexpected %q at byte %d", c, i)
			}
			tokens = append(tokens, text[i:i+end])
			i += end
		}
	}
	return tokens, nil
}

// parseBody reads what is in a block and returns the tokens behind it.
func parseBody(into *block, tokens []string, top bool) ([]string, error) {
	for len(tokens) > 0 {
		switch {
		case tokens[0] == "}" && !top:
			return tokens[1:], nil
		case len(tokens) > 1 && tokens[1] == "{":
			child := &block{name: tokens[0], options: map[string]string{}}
			rest, err := parseBody(child, tokens[2:], false)
			if err != nil {
				return nil, err
			}
			into.blocks, tokens = append(into.blocks, child), rest
		case len(tokens) > 3 && tokens[1] == "=":
			end := slices.Index(tokens, ";")
			if end < 3 {
				return nil, fmt.Errorf("option %q without a value", tokens[0])
			}
			if _, twice := into.options[tokens[0]]; twice {
				return nil, fmt.Errorf("option %q twice", tokens[0])
			}
			into.options[tokens[0]] = strings.Join(tokens[2:end], " ")
			tokens = tokens[end+1:]
		default:
			return nil, fmt.Errorf("unexpected %q", tokens[0])
		}
	}
	if !top {
		return nil, fmt.Errorf("block %q has no end", into.name)
	}
	return nil, nil
}
