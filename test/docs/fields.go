package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Kind is a kind of the API and the fields of its spec.
type Kind struct {
	Name, Group string
	// Fields are the paths of all fields below spec, with dots and without brackets: "storage.volumes.size".
	Fields []string
}

// foreign are fields whose types are Kubernetes' own. Their pages need not explain what is in them.
var foreign = []string{"nodeAffinity", "tolerations", "resources", "selector"}

// ReadKind reads a kind from the file of its CustomResourceDefinition.
func ReadKind(file string) (Kind, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Kind{}, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return Kind{}, fmt.Errorf("%s: %w", file, err)
	}
	kind := Kind{Name: crd.Spec.Names.Kind, Group: crd.Spec.Group}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	kind.Fields = fieldsOf("", &spec)
	slices.Sort(kind.Fields)
	return kind, nil
}

func fieldsOf(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	if schema.Items != nil && schema.Items.Schema != nil {
		schema = schema.Items.Schema
	}
	var fields []string
	for name, property := range schema.Properties {
		child := strings.TrimPrefix(path+"."+name, ".")
		fields = append(fields, child)
		if !slices.Contains(foreign, name) {
			fields = append(fields, fieldsOf(child, &property)...)
		}
	}
	return fields
}

// FieldTable is a table of a page that explains fields.
type FieldTable struct {
	Line int
	// Kind is the one whose fields it has; "" on a page of one kind.
	Kind string
	// Columns are the header cells after the first.
	Columns []string
	Rows    []FieldRow
}

// FieldRow explains one or more fields.
type FieldRow struct {
	Line int
	// Fields are their paths, as in Kind.Fields.
	Fields []string
	// Text is the whole row.
	Text string
}

var (
	// fieldHeader is the first cell of the header: "field", "field of KIND", or "field of `storage.volumes`".
	fieldHeader = regexp.MustCompile("^field(?: of ([A-Z][A-Za-z]+))?((?: of|,)? ?`.*`)?$")
	span        = regexp.MustCompile("`([^`]+)`")
)

// FieldTables are the tables of a page whose first column is headed "field".
func FieldTables(text string) []FieldTable {
	var all []FieldTable
	var prefixes []string
	inside := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := cellsOf(line)
		header := fieldHeader.FindStringSubmatch(cells[0])
		switch {
		case inside && strings.HasPrefix(cells[0], "---"):
		case inside:
			table := &all[len(all)-1]
			table.Rows = append(table.Rows, FieldRow{number, withPrefixes(prefixes, spans(cells[0])), line})
		case header != nil:
			inside, prefixes = true, spans(header[2])
			all = append(all, FieldTable{Line: number, Kind: header[1], Columns: cells[1:]})
		}
	}
	return all
}

func cellsOf(row string) []string {
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

func spans(text string) []string {
	var found []string
	for _, s := range span.FindAllStringSubmatch(text, -1) {
		found = append(found, s[1])
	}
	return found
}

func withPrefixes(prefixes, names []string) []string {
	if len(prefixes) == 0 {
		return names
	}
	var paths []string
	for _, prefix := range prefixes {
		for _, name := range names {
			paths = append(paths, prefix+"."+name)
		}
	}
	return paths
}

// Unexplained are the fields of a kind that no row explains. A field has a row of its own, or all fields below it have
// one. A field below another may be explained in that one's row, by its name.
func Unexplained(kind Kind, tables []FieldTable) []string {
	rows := map[string]string{}
	for _, table := range tables {
		if table.Kind != "" && table.Kind != kind.Name {
			continue
		}
		for _, row := range table.Rows {
			for _, field := range row.Fields {
				rows[field] += row.Text
			}
		}
	}
	var missing []string
	for _, field := range kind.Fields {
		if !isExplained(field, kind.Fields, rows) {
			missing = append(missing, field)
		}
	}
	return missing
}

func isExplained(field string, fields []string, rows map[string]string) bool {
	if hasRow(field, rows) {
		return true
	}
	parent := parentOf(field)
	if field == parent+".name" && len(childrenOf(parent, fields)) == 1 {
		return hasRow(parent, rows) // a reference is its name
	}
	children := childrenOf(field, fields)
	for _, child := range children {
		if !isExplained(child, fields, rows) {
			return false
		}
	}
	return len(children) > 0
}

// hasRow reports whether a field has a row, or the row of a field above it has its name.
func hasRow(field string, rows map[string]string) bool {
	if _, found := rows[field]; found {
		return true
	}
	for ancestor := parentOf(field); ancestor != ""; ancestor = parentOf(ancestor) {
		mentioned := spans(rows[ancestor])
		if slices.Contains(mentioned, strings.TrimPrefix(field, ancestor+".")) || slices.Contains(mentioned, strings.TrimPrefix(field, parentOf(field)+".")) {
			return true
		}
	}
	return false
}

// parentOf is the field above a field, "" for one of spec itself.
func parentOf(field string) string {
	return field[:max(strings.LastIndex(field, "."), 0)]
}

func childrenOf(parent string, fields []string) []string {
	var children []string
	for _, field := range fields {
		if rest, isBelow := strings.CutPrefix(field, parent+"."); isBelow && !strings.Contains(rest, ".") {
			children = append(children, field)
		}
	}
	return children
}
