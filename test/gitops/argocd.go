package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What Argo CD can say of an object.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"
)

// Health is what Argo CD says of an object.
type Health struct{ Status, Message string }

// Scripts are the health checks, by "group/Kind".
type Scripts map[string]string

// ReadScripts reads the checks that a kustomization gives to Argo CD, in the folder config/argocd/customizations.
func ReadScripts(folder string) (Scripts, error) { return read(folder, "health") }

// read reads the files that a kustomization gives to Argo CD for one purpose, by "group/Kind".
func read(folder, what string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var kustomization struct {
		ConfigMapGenerator []struct {
			Files []string `json:"files"`
		} `json:"configMapGenerator"`
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, generator := range kustomization.ConfigMapGenerator {
		for _, text := range generator.Files {
			entry, err := parseEntry(text)
			if err != nil {
				return nil, err
			}
			if entry.what != what {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, entry.file))
			if err != nil {
				return nil, err
			}
			files[entry.kind] = string(content)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has nothing for %s", folder, what)
	}
	return files, nil
}

// Judge runs the check of an object's kind. The limits are those of Argo CD: a second, and of Lua's libraries base and table alone.
// What is being deleted Argo CD calls Progressing without asking a check.
func (s Scripts) Judge(object *unstructured.Unstructured) (Health, error) {
	if object.GetDeletionTimestamp() != nil {
		return Health{Progressing, "Pending deletion"}, nil
	}
	kind := object.GroupVersionKind()
	script, found := s[kind.Group+"/"+kind.Kind]
	if !found {
		return Health{}, fmt.Errorf("no health check for %s of %s", kind.Kind, kind.Group)
	}
	table, err := run(script, object, nil)
	if err != nil {
		return Health{}, err
	}
	health := Health{Status: lua.LVAsString(table.RawGetString("status")), Message: lua.LVAsString(table.RawGetString("message"))}
	switch health.Status {
	case Healthy, Progressing, Degraded, Suspended:
		return health, nil
	}
	return health, fmt.Errorf("%q is no health", health.Status)
}

// run runs a script on an object, with what Argo CD gives to it: a second, Lua's libraries base and table, and of os the time alone.
func run(script string, object *unstructured.Unstructured, parameters map[string]string) (*lua.LTable, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			return nil, err
		}
	}
	state.PreloadModule(lua.OsLibName, func(state *lua.LState) int {
		state.Push(state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{"date": date}))
		return 1
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	given := state.NewTable()
	for name, text := range parameters {
		given.RawSetString(name, lua.LString(text))
	}
	state.SetGlobal("actionParams", given)
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(script); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, errors.New("the script gives no table")
	}
	return table, nil
}

// date is os.date, of the one form that scripts here use: the second, in UTC.
func date(state *lua.LState) int {
	if form := state.CheckString(1); form != "!%y%m%d%H%M%S" {
		state.RaiseError("os.date of the form %q", form)
	}
	state.Push(lua.LString(time.Now().UTC().Format("060102150405")))
	return 1
}

// value is a part of an object in Lua.
func value(state *lua.LState, part any) lua.LValue {
	switch part := part.(type) {
	case bool:
		return lua.LBool(part)
	case string:
		return lua.LString(part)
	case int64:
		return lua.LNumber(part)
	case float64:
		return lua.LNumber(part)
	case []any:
		table := state.CreateTable(len(part), 0)
		for _, item := range part {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(part))
		for key, item := range part {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}
