package provisioner

import (
	"strings"
	"testing"
)

const uid = "3f2a91bc-0d61-4d0f-9a53-5cf0a2f6f3aa"

func TestPathsOfClaims(t *testing.T) {
	long := strings.Repeat("long.name-", 25)
	for what, tc := range map[string]struct{ pattern, namespace, claim, want string }{
		"by default":          {defaultPath, "team-a", "scratch", "/team-a/scratch-3f2a91bc"},
		"a name with dots":    {defaultPath, "team-a", "data.of.claim", "/team-a/data.of.claim-3f2a91bc"},
		"the longest":         {defaultPath, strings.Repeat("n", 63), long, "/" + strings.Repeat("n", 63) + "/" + long[:54] + "-3f2a91bc"},
		"one element":         {"/{namespace}.{claim}", "team-a", "scratch", "/team-a.scratch"},
		"one that is cut":     {"/{namespace}.{claim}.{id}", "team-a", long, "/team-a." + long[:47] + ".3f2a91bc"},
		"twice":               {"/{claim}/{claim}-{claim}", "team-a", "s", "/s/s-s"},
		"a fixed beginning":   {"/claims/{id}", "team-a", "s", "/claims/3f2a91bc"},
		"no room for a claim": {"/{namespace}-{claim}", strings.Repeat("n", 63), "s", "/" + strings.Repeat("n", 63) + "-"},
	} {
		got := placePath(tc.pattern, tc.namespace, tc.claim, uid)
		if got != tc.want {
			t.Errorf("%s: %s, want %s", what, got, tc.want)
		}
		if good := sharePath.MatchString(got); good == (what == "no room for a claim") {
			t.Errorf("%s: %s is a path: %v", what, got, good)
		}
	}
}

func TestPatternsThatCantBe(t *testing.T) {
	for pattern, want := range map[string]string{
		"/{namespace}/{claim}":       "",
		"/{id}":                      "",
		"/a_b.c/{claim}":             "",
		"/{namespace}":               "all claims would have one path",
		"/{namespace}/{pvc}":         "{pvc} is not known",
		"/${pvc.metadata.name}":      "{pvc.metadata.name} is not known",
		"{namespace}/{claim}":        "give /NAME or /NAME/NAME",
		"/a/{namespace}/{claim}":     "give /NAME or /NAME/NAME",
		"/{namespace}/{claim}/":      "give /NAME or /NAME/NAME",
		"/../{claim}":                "give /NAME or /NAME/NAME",
		"/a b/{claim}":               "give /NAME or /NAME/NAME",
		"/{claim}{":                  "give /NAME or /NAME/NAME",
		"/" + long64 + "/{claim}":    "give /NAME or /NAME/NAME",
		"/{namespace}/{claim}\n{id}": "give /NAME or /NAME/NAME",
	} {
		if got := checkPattern(pattern, false); got == "" && want != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}

const long64 = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

func TestDirectoriesOfClaims(t *testing.T) {
	for what, tc := range map[string]struct {
		pattern       string
		depth         int
		want, problem string
	}{
		"depth 1":              {"", 1, "team-a.scratch-3f2a91bc", ""},
		"depth 2":              {"", 2, "team-a/scratch-3f2a91bc", ""},
		"depth 3":              {"", 3, "", "parameter path is missing: the share has depth 3, so give a path of 3 names"},
		"a pattern":            {"claims/{namespace}/{claim}", 3, "claims/team-a/scratch", ""},
		"one of another depth": {"{namespace}/{claim}", 1, "", "the share has depth 1, so give 1 names, not 2"},
		"one that has no room": {strings.Repeat("x", 60) + "{namespace}{claim}", 1, "", "which has a name of more than 63 characters"},
	} {
		got, problem := placeDirectory(tc.pattern, tc.depth, "team-a", "scratch", uid)
		if got != tc.want || !strings.Contains(problem, tc.problem) || (problem == "") != (tc.problem == "") {
			t.Errorf("%s: %q, %q", what, got, problem)
		}
	}
	for pattern, good := range map[string]bool{"{claim}": true, "{namespace}/{claim}": true, "a/b/c/d/e/f/g/{id}": true, "/{claim}": false, "a/b/c/d/e/f/g/h/{id}": false, "../{claim}": false, "{claim}/": false} {
		if problem := checkPattern(pattern, true); (problem == "") != good {
			t.Errorf("%s: %q", pattern, problem)
		}
	}
}
