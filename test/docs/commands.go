package docs

import (
	"regexp"
	"slices"
	"strings"
)

// programs are the first words that make a line a command.
var programs = []string{
	"apt-get", "argocd", "buildah", "cat", "ceph", "cosign", "crane", "curl", "docker", "eval", "git", "go", "grep", "helm", "howdah", "install", "jq", "kind",
	"kubectl", "kustomize", "ls", "make", "mkdir", "modprobe", "mount", "oras", "sha256sum", "sudo", "tar", "umount",
}

// data are languages of blocks that are not run.
var data = []string{"go", "json", "promql", "yaml"}

var assignment = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=\S*\s+`)

// isCommands tells whether a block has a line that a reader would type.
func isCommands(block Block) bool {
	// Pictures made of lines have words of commands in them.
	if slices.Contains(data, block.Language) || strings.Contains(block.Text, "┌") {
		return false
	}
	for line := range strings.Lines(block.Text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		line = assignment.ReplaceAllString(line, "")
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(word, "hack/") || (slices.Contains(programs, word) && !strings.HasPrefix(strings.TrimSpace(rest), "= ")) {
			return true
		}
	}
	return false
}
