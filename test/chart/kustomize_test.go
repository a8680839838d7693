package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// difference is one that there must be between what the chart gives and what kustomize gives. It takes it away from
// both sides, and tells whether it was there.
type difference struct {
	what, why string
	forget    func(chart, kustomize objects) bool
}

var differences = []difference{
	{
		"labels of a release", "kubectl apply has no releases",
		func(chart, _ objects) bool {
			return forEach(chart, func(o *unstructured.Unstructured) bool {
				labels := o.GetLabels()
				before := len(labels)
				maps.DeleteFunc(labels, func(key, _ string) bool {
					return slices.Contains([]string{"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart"}, key)
				})
				o.SetLabels(labels)
				return len(labels) != before
			})
		},
	},
	{
		"the release in selectors, and in the labels of pods", "it distinguishes two releases in one namespace, and kubectl apply has one only",
		func(chart, _ objects) bool {
			return forEach(chart, func(o *unstructured.Unstructured) bool {
				spec := o.Object["spec"]
				return without(spec, "app.kubernetes.io/instance")
			})
		},
	},
	{
		"the keep policy of CRDs", "helm uninstall removes objects without it; kubectl delete removes what it is given",
		func(chart, _ objects) bool {
			return forEach(chart, func(o *unstructured.Unstructured) bool {
				annotations := o.GetAnnotations()
				_, kept := annotations["helm.sh/resource-policy"]
				if kept != (o.GetKind() == "CustomResourceDefinition") {
					panic("what is kept are CRDs, all of them: " + keyOf(o))
				}
				delete(annotations, "helm.sh/resource-policy")
				if len(annotations) == 0 {
					annotations = nil
				}
				o.SetAnnotations(annotations)
				return kept
			})
		},
	},
	{
		"the Kubernetes namespace", "helm install --create-namespace makes it, and a chart must not make the one it is installed in",
		func(_, kustomize objects) bool { return forget(kustomize, "Namespace "+system) },
	},
	{
		"the pod of helm test", "a hook, which kubectl apply would start at once",
		func(chart, _ objects) bool {
			return forget(chart, "Pod "+system+"/"+release+"-test-names-no-share")
		},
	},
	{
		"how rules of roles are grouped", "the chart joins the two parts of the generated role, kustomize takes it as it is; what they allow is compared",
		func(chart, kustomize objects) bool {
			changed := false
			for _, side := range []objects{chart, kustomize} {
				changed = forEach(side, func(o *unstructured.Unstructured) bool {
					rules, found := o.Object["rules"].([]any)
					if found {
						o.Object["rules"] = rights(rules)
					}
					return found
				}) || changed
			}
			return changed
		},
	},
}

// Whoever installs with kustomize gets what the chart gives, object by object: the base, and each overlay with the
// values that lie beside it.
func TestKustomizeGivesWhatTheChartGives(t *testing.T) {
	overlays, err := filepath.Glob(filepath.Join(top, "config", "overlays", "*"))
	if err != nil || len(overlays) < 6 {
		t.Fatalf("overlays: %v, %v", overlays, err)
	}
	compare(t, "default", rendered(t))
	for _, overlay := range overlays {
		compare(t, "overlays/"+filepath.Base(overlay), rendered(t, "--values", filepath.Join(overlay, "values.yaml")))
	}
}

func compare(t *testing.T, folder string, chart objects) {
	t.Helper()
	t.Run(folder, func(t *testing.T) {
		kustomize := built(t, folder)
		for _, d := range differences {
			if !d.forget(chart, kustomize) {
				t.Errorf("there is no difference any more in %s (%s)", d.what, d.why)
			}
		}
		for key, object := range chart {
			if kustomize[key] == nil {
				t.Errorf("only the chart has %s", key)
			} else if diff := cmp.Diff(object.Object, kustomize[key].Object); diff != "" {
				t.Errorf("%s (-chart +kustomize):\n%s", key, diff)
			}
		}
		for key := range kustomize {
			if chart[key] == nil {
				t.Errorf("only kustomize has %s", key)
			}
		}
	})
}

// An overlay that gives what another gives already does not do what its name says.
func TestOverlaysDiffer(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(top, "config", "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]objects{"default": built(t, "default")}
	for _, entry := range entries {
		overlay := built(t, "overlays/"+entry.Name())
		for other, objects := range seen {
			if cmp.Equal(objects, overlay) {
				t.Errorf("%s is as %s", entry.Name(), other)
			}
		}
		seen[entry.Name()] = overlay
	}
}

func forEach(all objects, change func(*unstructured.Unstructured) bool) bool {
	changed := false
	for _, object := range all {
		changed = change(object) || changed
	}
	return changed
}

func forget(all objects, key string) bool {
	found := all[key] != nil
	delete(all, key)
	return found
}

// without removes a key from every map below a part of an object.
func without(part any, key string) bool {
	found := false
	switch part := part.(type) {
	case map[string]any:
		_, found = part[key]
		delete(part, key)
		for _, value := range part {
			found = without(value, key) || found
		}
	case []any:
		for _, value := range part {
			found = without(value, key) || found
		}
	}
	return found
}

// rights are what rules allow, one by one: "get pods of apps", in order.
func rights(rules []any) []any {
	var all []string
	texts := func(rule any, field string) []any {
		list, _ := rule.(map[string]any)[field].([]any)
		if len(list) == 0 {
			return []any{"-"}
		}
		return list
	}
	for _, rule := range rules {
		for field := range rule.(map[string]any) {
			if !slices.Contains([]string{"apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs"}, field) {
				panic("a field of a rule that is not compared: " + field)
			}
		}
		for _, verb := range texts(rule, "verbs") {
			for _, group := range texts(rule, "apiGroups") {
				for _, resource := range texts(rule, "resources") {
					for _, name := range texts(rule, "resourceNames") {
						for _, url := range texts(rule, "nonResourceURLs") {
							all = append(all, strings.Join([]string{fmt.Sprint(verb), fmt.Sprint(resource), fmt.Sprint(group), fmt.Sprint(name), fmt.Sprint(url)}, " "))
						}
					}
				}
			}
		}
	}
	slices.Sort(all)
	var out []any
	for _, right := range slices.Compact(all) {
		out = append(out, right)
	}
	return out
}

// What docs/operate/upgrade.md deletes to take the operator away without Helm: a namespace, and kinds with two labels. The CRDs stay, and
// with them what users have made.
func TestTheOperatorIsTakenAwayWithoutItsCRDs(t *testing.T) {
	const page = "docs/operate/upgrade.md"
	text, err := os.ReadFile(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, words := range []string{
		"kubectl delete namespace " + system, "-l app.kubernetes.io/name=howdah,app.kubernetes.io/component=operator",
		"kubectl delete clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "kubectl delete roles,rolebindings -A",
	} {
		if !strings.Contains(string(text), words) {
			t.Errorf("%s does not have %q", page, words)
		}
	}
	folders, err := filepath.Glob(filepath.Join(top, "config", "overlays", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, folder := range folders {
		folders[i] = "overlays/" + filepath.Base(folder)
	}
	for _, folder := range append(folders, "default") {
		for key, object := range built(t, folder) {
			labels := object.GetLabels()
			switch {
			case object.GetKind() == "CustomResourceDefinition", object.GetNamespace() == system, key == "Namespace "+system:
			case !slices.Contains(kinds, object.GetKind()) || labels["app.kubernetes.io/name"] != "howdah" || labels["app.kubernetes.io/component"] != "operator":
				t.Errorf("%s: the commands of %s leave %s", folder, page, key)
			}
		}
	}
}
