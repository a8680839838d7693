package admissible

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxNamed is how many faults a text names before it only counts.
	maxNamed = 3
	// maxValue is how many characters of a value a text has.
	maxValue = 64
)

// expression is what Kubernetes' messages have for those who read regular expressions. They have the same in words, with examples.
var expression = regexp.MustCompile(`( \(|, )regex used for validation is '[^']*'`)

// Text says what is wrong: the path of each field, its value, and what it must be.
func Text(faults field.ErrorList) string {
	texts := make([]string, 0, maxNamed+1)
	for _, fault := range faults[:min(len(faults), maxNamed)] {
		texts = append(texts, text(fault))
	}
	if more := len(faults) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func text(fault *field.Error) string {
	detail := expression.ReplaceAllString(fault.Detail, "")
	if strings.Count(detail, "(") < strings.Count(detail, ")") {
		detail = strings.TrimSuffix(detail, ")")
	}
	detail = strings.ReplaceAll(detail, ",  or ", ", or ")
	switch fault.Type {
	case field.ErrorTypeRequired, field.ErrorTypeTooLong:
		return fmt.Sprintf("%s: %s", fault.Field, detail)
	default:
		return fmt.Sprintf("%s: %s can't be used: %s", fault.Field, quoted(fault.BadValue), detail)
	}
}

// quoted is a value in quotes, with an end.
func quoted(value any) string {
	if list, is := value.([]string); is {
		texts := make([]string, 0, maxNamed+1)
		for _, value := range list[:min(len(list), maxNamed)] {
			texts = append(texts, quoted(value))
		}
		if len(list) > maxNamed {
			texts = append(texts, "…")
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	runes := []rune(fmt.Sprint(value))
	if len(runes) > maxValue {
		return fmt.Sprintf("%q… (%d characters)", string(runes[:maxValue]), len(runes))
	}
	return strconv.Quote(string(runes))
}
