package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestReasonsAreExplained finds reasons of conditions that no page for users has.
func TestReasonsAreExplained(t *testing.T) {
	var pages strings.Builder
	for _, folder := range []string{"kinds", "operate", "use"} {
		files, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d pages in docs/%s: %v", len(files), folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages.Write(text)
		}
	}
	all := 0
	for _, file := range []string{"api/v1alpha1/conditions.go", "api/internalapi/v1alpha1/conditions.go"} {
		for name, reason := range reasonsOf(t, filepath.Join(root, file)) {
			all++
			if !strings.Contains(pages.String(), "`"+reason+"`") {
				t.Errorf("%s: no page of docs/kinds, docs/operate or docs/use says what %s (%s) means and what to do", file, name, reason)
			}
		}
	}
	if all < 20 {
		t.Errorf("%d reasons were found", all)
	}
}

// reasonsOf are the constants of a file whose names begin with Reason and that are strings, with their values.
func reasonsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !strings.HasPrefix(name.Name, "Reason") {
				continue
			}
			if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
				if reasons[name.Name], err = strconv.Unquote(literal.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
		return true
	})
	return reasons
}
