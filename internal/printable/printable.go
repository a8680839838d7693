package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text with what is not to be printed escaped as Go does it (\x1b, \u202e), and with blanks for tabs and ends of lines: C0 and
// C1 control characters, DEL, marks that change the direction of a text or have no width, line and paragraph separators, code points that
// are not assigned, and bytes that are no UTF-8. A text that has none of these stays as it is.
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

// JSON is text in the JSON format with the same escaped, so that it says the same to a parser: outside of strings JSON has nothing that is
// escaped here. Bytes that are no UTF-8 become U+FFFD, as encoding/json has it.
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

// IsPlain tells whether a text of several lines has nothing that Text escapes, but for tabs and ends of lines.
func IsPlain(text string) bool { return isCleanLines(text) }

// escape writes a rune, or what stands for it. short is the format for one below 0x100.
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
	case short == `\u%04x`: // JSON has code points above that as two surrogates (RFC 8259, section 7).
		fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// isShown: the rune is a letter, mark, number, sign or blank. Control and format characters, separators of lines, surrogates and
// private and unassigned code points are none.
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
