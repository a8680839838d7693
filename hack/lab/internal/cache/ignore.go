package cache

import (
	"os"
	"path"
	"strings"
)

// ignoreRules are the lines of a .dockerignore.
type ignoreRules []string

func readIgnore(file string) (ignoreRules, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseIgnore(string(data)), nil
}

func parseIgnore(text string) ignoreRules {
	var rules ignoreRules
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	return rules
}

// match reports whether a file stays out. As in Docker, the last rule that fits
// decides, and a rule that fits a folder fits all that is in it.
func (rules ignoreRules) match(file string) bool {
	out := false
	for _, rule := range rules {
		pattern, keep := strings.CutPrefix(rule, "!")
		pattern = strings.TrimPrefix(path.Clean(pattern), "/")
		if fits(pattern, file) {
			out = !keep
		}
	}
	return out
}

func fits(pattern, file string) bool {
	for name := file; name != "."; name = path.Dir(name) {
		if matchParts(strings.Split(pattern, "/"), strings.Split(name, "/")) {
			return true
		}
	}
	return false
}

func matchParts(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for i := 0; i <= len(name); i++ {
			if matchParts(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matchParts(pattern[1:], name[1:])
}
