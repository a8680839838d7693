package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pageOf is the page that explains a kind.
func pageOf(kind string) string {
	if kind == "FileShareSnapshotSchedule" {
		kind = "FileShareSnapshot" // both are on one page
	}
	return "docs/kinds/" + strings.ToLower(kind) + ".md"
}

// Every field of every kind's spec has a row in a table of the kind's page, and every row is about a field that exists.
func TestEveryFieldHasARow(t *testing.T) {
	files, err := filepath.Glob(root + "/config/crd/bases/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d definitions of kinds, want at least 12 (%v)", len(files), err)
	}
	for _, file := range files {
		kind, err := ReadKind(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(kind.Fields) == 0 {
			t.Errorf("%s: the spec of %s has no fields: the test looks at nothing", file, kind.Name)
		}
		page := pageOf(kind.Name)
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Errorf("kind %s has no page: %v", kind.Name, err)
			continue
		}
		tables := FieldTables(string(text))
		for _, field := range Unexplained(kind, tables) {
			t.Errorf("%s has no row for spec.%s of %s", page, field, kind.Name)
		}
		for _, table := range tables {
			if table.Kind == "" || table.Kind == kind.Name {
				checkTable(t, page, table, kind)
			}
		}
	}
}

// checkTable finds rows of fields that are not there, and columns that are missing. The internal kinds have no
// defaults that a user must know.
func checkTable(t *testing.T, page string, table FieldTable, kind Kind) {
	t.Helper()
	want := []string{"what it does", "default", "when it changes"}
	if strings.HasPrefix(kind.Group, "internal.") {
		want = []string{"what it does", "when it changes"}
	}
	if diff := cmp.Diff(want, table.Columns); diff != "" {
		t.Errorf("%s:%d: columns (-want +got):\n%s", page, table.Line, diff)
	}
	for _, row := range table.Rows {
		if len(row.Fields) == 0 {
			t.Errorf("%s:%d: the row names no field", page, row.Line)
		}
		for _, field := range row.Fields {
			if !slices.Contains(kind.Fields, field) {
				t.Errorf("%s:%d: %s has no field spec.%s", page, row.Line, kind.Name, field)
			}
		}
		for _, cell := range cellsOf(row.Text) {
			if cell == "" {
				t.Errorf("%s:%d: a cell is empty", page, row.Line)
			}
		}
	}
}

func TestUnexplainedFieldsAreFound(t *testing.T) {
	kind := Kind{Name: "Thing", Fields: []string{
		"drain", "drain.servers", "drain.timeout", "limits", "limits.perNamespace", "limits.perNamespace.shares", "limits.total", "limits.total.shares",
		"other", "placement", "placement.key", "placement.other", "ref", "ref.name", "storage", "storage.a", "storage.a.size",
	}}
	tables := FieldTables("# Thing\n\n" +
		"| field | what it does |\n|---|---|\n| `ref` | x |\n| `placement` | has `key` |\n| `drain.servers`, `drain.timeout` | x |\n\n" +
		"| field of `limits.total`, `limits.perNamespace` | x |\n|---|---|\n| `shares` | x |\n\n" +
		"| field of `storage.a` | x |\n|---|---|\n| `size` | x |\n\n" +
		"| field of Another | x |\n|---|---|\n| `other` | x |\n\n" +
		"| reason | x |\n|---|---|\n| `other` | x |\n")
	if len(tables) != 4 {
		t.Fatalf("%d tables of fields, want 4: %v", len(tables), tables)
	}
	if diff := cmp.Diff([]string{"other", "placement.other"}, Unexplained(kind, tables)); diff != "" {
		t.Errorf("unexplained fields (-want +got):\n%s", diff)
	}
}
