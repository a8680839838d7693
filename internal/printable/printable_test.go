package printable

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are texts that control a terminal, hide something or look like something else, with the expected result.
var hostile = map[string]string{
	"plain é 日本 🙂":              "plain é 日本 🙂",
	"two\nlines\tand a tab":     "two lines and a tab",
	"\x00\x07\x08\r\x1b":        `\x00\x07\x08\x0d\x1b`,
	"\x1b[2J\x1b[31mred":        `\x1b[2J\x1b[31mred`,
	"\x1b]0;title\x07":          `\x1b]0;title\x07`,
	"\x1b]8;;http://x\x1b\\a":   `\x1b]8;;http://x\x1b\a`,
	"\x7f":                      `\x7f`,
	"\u009b2J\u0085\u009d":      `\x9b2J\x85\x9d`,
	"\x9b2J":                    `\x9b2J`,
	"a\u202egpj.exe\u202c":      `a\u202egpj.exe\u202c`,
	"\u2066x\u2069\u200f\u061c": `\u2066x\u2069\u200f\u061c`,
	"zero\u200bwidth\ufeff":     `zero\u200bwidth\ufeff`,
	"line\u2028separator":       `line\u2028separator`,
	"tag\U000e0041":             `tag\U000e0041`,
	"\xff\xfe no UTF-8 \xc3":    `\xff\xfe no UTF-8 \xc3`,
	"replaced \ufffd":           "replaced \ufffd",
	"private \ue000":            `private \ue000`,
}

func TestTextCanNotControlATerminal(t *testing.T) {
	for text, want := range hostile {
		if got := Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if again := Text(Text(text)); again != Text(text) {
			t.Errorf("%q changes when it is escaped again", text)
		}
	}
}

func TestEscapedJSONHasTheSameValuesAndCanNotControlATerminal(t *testing.T) {
	for text := range hostile {
		encoded, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		escaped := JSON(string(encoded))
		if !isCleanLines(escaped) {
			t.Errorf("%q has unprintable text: %q", text, escaped)
		}
		var before, after map[string]string
		if err := errors.Join(json.Unmarshal(encoded, &before), json.Unmarshal([]byte(escaped), &after)); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%q is read as %q", value, after)
			}
		}
	}
}

// The two log handlers that Howdah's processes use.
func TestLogLinesCanNotControlATerminal(t *testing.T) {
	for text := range hostile {
		for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(JSONLines(b), nil) },
			"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(Terminal(b), nil) },
		} {
			var b bytes.Buffer
			slog.New(handler(&b)).Info(text, "path", text, "error", errors.New(text), text, 1, slog.Group(text, "bytes", []string{text}))
			if !isCleanLines(b.String()) || strings.Count(b.String(), "\n") != 1 {
				t.Errorf("%s: %q is %q", name, text, b.String())
			}
		}
	}
}

func TestATerminalGetsStylesAndNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[31mred\x1b[0m\n\tnext\n": "\x1b[31mred\x1b[0m\n\tnext\n",
		"a\x1b[2Jb\x1b[1;32mc\x1b[0m":  `a\x1b[2Jb` + "\x1b[1;32mc\x1b[0m",
		"\u202e\x1b[0m\r\n\xff\x1b":    `\u202e` + "\x1b[0m" + `\x0d` + "\n" + `\xff\x1b`,
	} {
		var b bytes.Buffer
		if n, err := Terminal(&b).Write([]byte(text)); err != nil || n != len(text) || b.String() != want {
			t.Errorf("%q is %q, want %q (%d, %v)", text, b.String(), want, n, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := Text(text)
		if !isClean(shown) || !utf8.ValidString(shown) {
			t.Errorf("%q is %q", text, shown)
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if err := errors.Join(json.Unmarshal(encoded, &before), json.Unmarshal([]byte(JSON(string(encoded))), &after)); err != nil || before != after {
			t.Errorf("%q: %v", encoded, err)
		}
	})
}
