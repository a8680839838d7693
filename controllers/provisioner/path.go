package provisioner

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// maxElement is how long an element of a share's path can be.
	maxElement = 63
	// idLength is how much of a claim's UID is in its path.
	idLength = 8
)

var (
	// sharePath is what FileShares take (api/v1alpha1: spec.path).
	sharePath   = regexp.MustCompile(`^(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}){1,2}$`)
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
)

// checkPattern tells what is wrong with the parameter path, "" if nothing.
func checkPattern(pattern string) string {
	for _, found := range placeholder.FindAllString(pattern, -1) {
		if found != "{namespace}" && found != "{claim}" && found != "{id}" {
			return fmt.Sprintf("%s is not known; there are {namespace}, {claim} and {id}", found)
		}
	}
	switch {
	case !strings.Contains(pattern, "{claim}") && !strings.Contains(pattern, "{id}"):
		return "all claims would have one path; put {claim} or {id} in it, for example " + defaultPath
	case !sharePath.MatchString(placePath(pattern, "n", "c", strings.Repeat("0", idLength))):
		return "give /NAME or /NAME/NAME, each of at most 63 letters, digits, '_', '.' and '-', for example " + defaultPath
	}
	return ""
}

// placePath is the path of a claim's share: the pattern with its names. A claim's name can have 253 characters: it is cut to what fits, and {id}, the
// beginning of the claim's UID, tells those apart that then look alike, and one from an earlier one of its name.
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
