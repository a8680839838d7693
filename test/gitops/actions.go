package gitops

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Actions are what Argo CD offers to do with objects, by "group/Kind".
type Actions map[string]kindActions

// kindActions are those of a kind, as Argo CD's ConfigMap has them (ResourceActions).
type kindActions struct {
	Discovery   string `json:"discovery.lua"`
	Definitions []struct {
		Name   string `json:"name"`
		Action string `json:"action.lua"`
	} `json:"definitions"`
}

// Outcome is what an action does: Operation is "patch" for the object itself, "create" for another one.
type Outcome struct {
	Operation string
	Object    *unstructured.Unstructured
}

// ReadActions reads the actions that a kustomization gives to Argo CD, in the folder config/argocd/customizations.
func ReadActions(folder string) (Actions, error) {
	files, err := read(folder, "actions")
	if err != nil {
		return nil, err
	}
	all := Actions{}
	for kind, text := range files {
		var actions kindActions
		if err := yaml.UnmarshalStrict([]byte(text), &actions); err != nil {
			return nil, fmt.Errorf("actions of %s: %w", kind, err)
		}
		all[kind] = actions
	}
	return all, nil
}

func (a Actions) of(object *unstructured.Unstructured) kindActions {
	kind := object.GroupVersionKind()
	return a[kind.Group+"/"+kind.Kind]
}

// Offer is an action that there is for an object as it is.
type Offer struct {
	// Enabled: it can be chosen now.
	Enabled bool
	// Label is what Argo CD's pages show; "": the action's name.
	Label string
}

// Offered are the actions that there are for an object as it is.
func (a Actions) Offered(object *unstructured.Unstructured) (map[string]Offer, error) {
	table, err := run(a.of(object).Discovery, object, nil)
	if err != nil {
		return nil, err
	}
	offered := map[string]Offer{}
	table.ForEach(func(name, about lua.LValue) {
		if about, ok := about.(*lua.LTable); ok {
			offered[name.String()] = Offer{
				Enabled: about.RawGetString("disabled") != lua.LTrue, Label: lua.LVAsString(about.RawGetString("displayName")),
			}
		}
	})
	return offered, nil
}

// Do runs an action on an object.
func (a Actions) Do(object *unstructured.Unstructured, name string, parameters map[string]string) (Outcome, error) {
	for _, definition := range a.of(object).Definitions {
		if definition.Name != name {
			continue
		}
		table, err := run(definition.Action, object, parameters)
		if err != nil {
			return Outcome{}, err
		}
		return outcome(table)
	}
	return Outcome{}, fmt.Errorf("no action %q", name)
}

// outcome reads what an action gives: the changed object, or a list of one thing to be done.
func outcome(table *lua.LTable) (Outcome, error) {
	switch result := plain(table).(type) {
	case map[string]any:
		return Outcome{"patch", &unstructured.Unstructured{Object: result}}, nil
	case []any:
		if len(result) == 1 {
			only, _ := result[0].(map[string]any)
			operation, _ := only["operation"].(string)
			resource, _ := only["resource"].(map[string]any)
			if operation == "create" && resource != nil {
				return Outcome{operation, &unstructured.Unstructured{Object: resource}}, nil
			}
		}
	}
	return Outcome{}, errors.New("the action gives neither an object nor one that is to be made")
}

// plain is a value of Lua in JSON's types. A table that is empty is a list there, as it is for Argo CD.
func plain(from lua.LValue) any {
	switch from := from.(type) {
	case lua.LBool:
		return bool(from)
	case lua.LString:
		return string(from)
	case lua.LNumber:
		if whole := int64(from); lua.LNumber(whole) == from {
			return whole
		}
		return float64(from)
	case *lua.LTable:
		if key, _ := from.Next(lua.LNil); key != lua.LNil && key.Type() == lua.LTString {
			object := map[string]any{}
			from.ForEach(func(key, item lua.LValue) { object[key.String()] = plain(item) })
			return object
		}
		list := []any{}
		from.ForEach(func(_, item lua.LValue) { list = append(list, plain(item)) })
		return list
	}
	return nil
}
