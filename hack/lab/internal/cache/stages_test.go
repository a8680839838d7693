package cache

import (
	"slices"
	"testing"
)

func TestAStageDependsOnWhatItCopiesByAnyWay(t *testing.T) {
	stages := readStages(`
FROM ${DEBIAN} AS packaged
RUN true; \
    true
FROM packaged AS handles
COPY internal/handles /src
FROM packaged AS ganesha
COPY --from=handles /out /
FROM --platform=${BUILDPLATFORM} ${GO} AS build
COPY go.mod \
     go.sum ./
COPY --chmod=755 cmd cmd
FROM ganesha AS server
COPY --from=build /out/howdah /usr/local/bin/howdah
`)
	for target, want := range map[string][]string{
		"packaged": nil,
		"ganesha":  {"internal/handles"},
		"server":   {"cmd", "go.mod", "go.sum", "internal/handles"},
	} {
		got := copied(stages, target)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s copies %v, not %v", target, got, want)
		}
	}
}
