package cache

import (
	"os"
	"path"
	"slices"
	"strings"
)

// stage is what one stage of a Dockerfile is made of.
type stage struct {
	stages []string // Other stages: the one it starts from, and those that it copies from.
	files  []string // Paths of the context that it copies.
}

// readStages reads the stages of a Dockerfile by name. It knows FROM and COPY, which is all that says
// what a stage depends on.
func readStages(text string) map[string]stage {
	stages := map[string]stage{}
	var name string
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "FROM" && strings.HasPrefix(fields[1], "--platform=") {
			fields = slices.Delete(fields, 1, 2)
		}
		switch {
		case len(fields) == 4 && fields[0] == "FROM" && strings.EqualFold(fields[2], "AS"):
			name = fields[3]
			stages[name] = stage{stages: []string{fields[1]}}
		case len(fields) > 2 && fields[0] == "COPY":
			now := stages[name]
			from := ""
			sources := fields[1 : len(fields)-1]
			for len(sources) > 0 && strings.HasPrefix(sources[0], "--") {
				if other, ok := strings.CutPrefix(sources[0], "--from="); ok {
					from = other
				}
				sources = sources[1:]
			}
			if from != "" {
				now.stages = append(now.stages, from)
			} else {
				now.files = append(now.files, sources...)
			}
			stages[name] = now
		}
	}
	return stages
}

// copied are the paths of the context that go into the target, by its own stage or by those it is made of.
func copied(stages map[string]stage, target string) []string {
	files := stages[target].files
	for _, other := range stages[target].stages {
		files = append(files, copied(stages, other)...)
	}
	return files
}

// stageInputs lists the files of the context that the target's stage is made of.
func (b Build) stageInputs() ([]string, error) {
	text, err := os.ReadFile(b.Dockerfile)
	if err != nil {
		return nil, err
	}
	all, err := b.inputs()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, file := range all {
		for _, wanted := range copied(readStages(string(text)), b.Target) {
			wanted = path.Clean(wanted)
			if wanted == "." || file == wanted || strings.HasPrefix(file, wanted+"/") {
				files = append(files, file)
				break
			}
		}
	}
	return files, nil
}
