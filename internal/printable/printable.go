package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes unprintable parts of a text as Go does (\x1b, \u202e), and replaces tabs and line ends by blanks. Escaped are C0 and C1
// control characters, DEL, characters that change the direction of text or have no width, line and paragraph separators, unassigned code
// points, and invalid UTF-8. Any other text is returned unchanged.
func Text(text string) string {
	if isClean(text) {
		return text
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == '\t' || r == '\n':
			b.WriteByte(' ')
		default:
			escape(&b, r, text[at:at+size], `\x%02x`)
		}
		at += size
	}
	return b.String()
}

// JSON escapes the same in a JSON text, so that a parser reads the same values. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func JSON(encoded string) string {
	if isCleanLines(encoded) {
		return encoded
	}
	var b strings.Builder
	for at := 0; at < len(encoded); {
		r, size := utf8.DecodeRuneInString(encoded[at:])
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		default:
			escape(&b, r, encoded[at:at+size], `\u%04x`)
		}
		at += size
	}
	return b.String()
}

// IsPlain reports whether a text has nothing that Text escapes, except tabs and line ends.
func IsPlain(text string) bool { return isCleanLines(text) }

// escape writes a rune or its escape sequence. short is the format for runes below 0x100.
func escape(b *strings.Builder, r rune, raw, short string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		fmt.Fprintf(b, short, raw[0])
	case isShown(r):
		b.WriteString(raw)
	case r < 0x100:
		fmt.Fprintf(b, short, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	case short == `\u%04x`: // JSON writes larger code points as two surrogates (RFC 8259, section 7).
		fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// isShown reports whether a rune is a letter, mark, number, punctuation, symbol or blank. Control and format characters, line separators,
// surrogates, and private and unassigned code points are not.
func isShown(r rune) bool { return unicode.IsGraphic(r) }

func isClean(text string) bool { return isCleanBut(text, "") }

func isCleanLines(text string) bool { return isCleanBut(text, "\n\t") }

func isCleanBut(text, allowed string) bool {
	for _, r := range text {
		if !isShown(r) && !strings.ContainsRune(allowed, r) {
			return false
		}
	}
	return utf8.ValidString(text)
}
