package provisioner

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxElement is the maximum length of an element of a share's path.
	maxElement = 63
	// idLength is how many characters of a claim's UID are in its path.
	idLength = 8
)

var (
	// sharePath is what FileShares take (api/v1alpha1: spec.path).
	sharePath     = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}){1,2}$`)
	directoryPath = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,62})(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}){0,7}$`)
	placeholder   = regexp.MustCompile(`\{[^{}]*\}`)
)

// checkPattern returns what is wrong with the parameter path; "" if nothing.
func checkPattern(pattern string, directories bool) string {
	example := placePath(pattern, "n", "c", strings.Repeat("0", idLength))
	for _, found := range placeholder.FindAllString(pattern, -1) {
		if found != "{namespace}" && found != "{claim}" && found != "{id}" {
			return fmt.Sprintf("%s is not known; there are {namespace}, {claim} and {id}", found)
		}
	}
	switch {
	case !strings.Contains(pattern, "{claim}") && !strings.Contains(pattern, "{id}"):
		return "all claims would have one path; put {claim} or {id} in it, for example " + defaultPath
	case directories && !directoryPath.MatchString(example):
		return "give as many names as the share has depth, NAME or NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', for example {namespace}/{claim}-{id}"
	case !directories && !sharePath.MatchString(example):
		return "give /NAME or /NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', for example " + defaultPath
	}
	return ""
}

// placePath is the path of a claim's share: the pattern with the claim's names. A claim's name can have 253 characters,
// and is cut. {id}, the beginning of the claim's UID, distinguishes claims with equal beginnings, and earlier claims of
// the same name.
func placePath(pattern, namespace, claim, uid string) string {
	id := uid[:min(len(uid), idLength)]
	elements := strings.Split(pattern, "/")
	for i, element := range elements {
		element = strings.NewReplacer("{namespace}", namespace, "{id}", id).Replace(element)
		if n := strings.Count(element, "{claim}"); n > 0 {
			room := (maxElement - (len(element) - n*len("{claim}"))) / n
			element = strings.ReplaceAll(element, "{claim}", claim[:max(0, min(len(claim), room))])
		}
		elements[i] = element
	}
	return strings.Join(elements, "/")
}

// placeDirectory is the path of a claim's directory in a share of a depth, or what is wrong with the class.
func placeDirectory(pattern string, depth int, namespace, claim, uid string) (string, string) {
	if pattern == "" {
		switch depth {
		case 1:
			pattern = "{namespace}.{claim}-{id}"
		case 2:
			pattern = "{namespace}/{claim}-{id}"
		default:
			return "", fmt.Sprintf("parameter path is missing: the share has depth %d, so give a path of %d names, {claim} or {id} among them", depth, depth)
		}
	}
	if n := strings.Count(pattern, "/") + 1; n != depth {
		return "", fmt.Sprintf("parameter path is %q: the share has depth %d, so give %d names, not %d", pattern, depth, depth, n)
	}
	path := placePath(pattern, namespace, claim, uid)
	if !directoryPath.MatchString(path) {
		return "", fmt.Sprintf("parameter path makes %s of this claim, which has a name of more than %d characters; use another", path, maxElement)
	}
	return path, ""
}
