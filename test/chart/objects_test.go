package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Operators with one Lease stand by for each other, so the second release of a Kubernetes namespace would never work.
func TestEachReleaseOfANamespaceHasItsOwnLease(t *testing.T) {
	leases := map[string]string{}
	for _, name := range []string{"team-a-howdah", "team-b-howdah"} {
		all := rendered(t, "--set", "fullnameOverride="+name, "--set", "watchNamespaces={"+name+"}")
		for _, object := range all {
			if object.GetKind() != "Deployment" {
				continue
			}
			for _, container := range as[appsv1.Deployment](t, all, "Deployment "+object.GetNamespace()+"/"+object.GetName()).Spec.Template.Spec.Containers {
				at := slices.IndexFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--leader-election-id=") })
				if at < 0 {
					t.Fatalf("%s: %v name no Lease", name, container.Args)
				}
				if other := leases[container.Args[at]]; other != "" {
					t.Errorf("%s and %s have one Lease: %s", name, other, container.Args[at])
				}
				leases[container.Args[at]] = name
			}
		}
	}
	if len(leases) != 2 {
		t.Errorf("%v", leases)
	}
}

func TestWhatOneGetsWhoSetsNothing(t *testing.T) {
	all := rendered(t)
	for kind, want := range map[string]int{
		"CustomResourceDefinition": 12, "Deployment": 1, "ServiceAccount": 1, "Service": 1, "Role": 1, "RoleBinding": 1,
		"ValidatingAdmissionPolicy": 3, "ValidatingAdmissionPolicyBinding": 3,
		"NetworkPolicy": 1,
		// Only who asks for them, or has such a cluster, gets them.
		"CiliumClusterwideNetworkPolicy": 0, "ServiceMonitor": 0, "PodMonitor": 0, "PrometheusRule": 0, "ConfigMap": 0, "PodDisruptionBudget": 0,
	} {
		if got := all.count(kind); got != want {
			t.Errorf("%d objects of kind %s, want %d", got, kind, want)
		}
	}
	for key, object := range all {
		if object.GetKind() == "CustomResourceDefinition" && object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s goes with the release, and all objects with it", key)
		}
		for _, rule := range rulesOf(object) {
			if strings.Contains(rule, "*") {
				t.Errorf("%s gives more than it names: %s", key, rule)
			}
		}
	}
	for _, binding := range []string{"howdah-data-servers", "howdah-namespace-servers", "howdah-stewards"} {
		actions := as[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, all, "ValidatingAdmissionPolicyBinding "+binding).Spec.ValidationActions
		if !slices.Equal(actions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}) {
			t.Errorf("server pods are not held to what is theirs: %s does %v", binding, actions)
		}
	}
	pod := operator(t, all).Spec.Template.Spec
	container := pod.Containers[0].SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || !*container.ReadOnlyRootFilesystem || *container.AllowPrivilegeEscalation ||
		!slices.Equal(container.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the operator may more than it needs: %v, %v", pod.SecurityContext, container)
	}
	seconds := map[string]int64{}
	for _, toleration := range pod.Tolerations {
		seconds[toleration.Key] = *toleration.TolerationSeconds
	}
	if want := (map[string]int64{"node.kubernetes.io/not-ready": 10, "node.kubernetes.io/unreachable": 10}); !maps.Equal(seconds, want) {
		t.Errorf("a lost node loses the operator after %v", seconds)
	}
}

func rulesOf(object *unstructured.Unstructured) []string {
	rules, _ := object.Object["rules"].([]any)
	var all []string
	for _, right := range rights(rules) {
		all = append(all, right.(string))
	}
	return all
}

// The source of images is set in one place, also for the pods that the operator makes and for helm test.
func TestImages(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for what, tc := range map[string]struct{ set, howdah, server string }{
		"by default":                             {"logLevel=info", "howdah/howdah:0.1.0", "howdah/server:0.1.0"},
		"with names and tags":                    {"image.repository=a.example:5000/b/c,image.tag=d,serverImage.repository=x/y,serverImage.tag=z", "a.example:5000/b/c:d", "x/y:z"},
		"by digest":                              {"image.digest=" + digest, "howdah/howdah@" + digest, "howdah/server:0.1.0"},
		"by digest, with a tag for people":       {"serverImage.tag=z,serverImage.digest=" + digest, "howdah/howdah:0.1.0", "howdah/server:z@" + digest},
		"from one registry":                      {"imageRegistry=r.example:5000", "r.example:5000/howdah/howdah:0.1.0", "r.example:5000/howdah/server:0.1.0"},
		"from a registry's folder":               {"imageRegistry=r.example/mirror/", "r.example/mirror/howdah/howdah:0.1.0", "r.example/mirror/howdah/server:0.1.0"},
		"from one registry in place of another":  {"imageRegistry=r.example,image.repository=ghcr.io/howdah/howdah,serverImage.repository=localhost/server", "r.example/howdah/howdah:0.1.0", "r.example/server:0.1.0"},
		"from one registry, with a port in both": {"imageRegistry=r.example:1,image.repository=q:2/howdah", "r.example:1/howdah:0.1.0", "r.example:1/howdah/server:0.1.0"},
	} {
		t.Run(what, func(t *testing.T) {
			all := rendered(t, "--set", tc.set)
			container := operator(t, all).Spec.Template.Spec.Containers[0]
			environment := map[string]string{}
			for _, variable := range container.Env {
				environment[variable.Name] = variable.Value
			}
			test := as[corev1.Pod](t, all, "Pod howdah-system/howdah-test-names-no-share").Spec.Containers[0].Image
			for where, image := range map[string][2]string{
				"the operator": {container.Image, tc.howdah}, "namespace servers": {environment["HOWDAH_IMAGE"], tc.howdah},
				"data servers": {environment["HOWDAH_SERVER_IMAGE"], tc.server}, "helm test": {test, tc.server},
			} {
				if image[0] != image[1] {
					t.Errorf("%s: %s, want %s", where, image[0], image[1])
				}
			}
		})
	}
}

func TestPullSecretsReachEveryPod(t *testing.T) {
	want := []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}
	all := rendered(t, "--set", "imagePullSecrets={one,two}")
	pod := operator(t, all).Spec.Template.Spec
	if !slices.Equal(pod.ImagePullSecrets, want) {
		t.Errorf("the operator's pods: %v", pod.ImagePullSecrets)
	}
	if !slices.Contains(pod.Containers[0].Args, "--image-pull-secrets=one,two") {
		t.Errorf("the pods that it makes: %v", pod.Containers[0].Args)
	}
	if got := as[corev1.ServiceAccount](t, all, "ServiceAccount howdah-system/howdah").ImagePullSecrets; !slices.Equal(got, want) {
		t.Errorf("the account: %v", got)
	}
	if got := as[corev1.Pod](t, all, "Pod howdah-system/howdah-test-names-no-share").Spec.ImagePullSecrets; !slices.Equal(got, want) {
		t.Errorf("helm test: %v", got)
	}
}

// With a list of namespaces the operator can do nothing in others.
func TestNamespacesThatAreWatched(t *testing.T) {
	everywhere, some := rendered(t), rendered(t, "--set", "watchNamespaces={team-a,team-b}")
	cluster := rulesOf(some["ClusterRole howdah-operator"])
	for _, right := range cluster {
		for _, resource := range []string{"pods", "secrets", "fileservers", "shareexports", "statefulsets"} {
			if strings.Contains(right, " "+resource+" ") {
				t.Errorf("in every namespace: %s", right)
			}
		}
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		both := append(slices.Clone(cluster), rulesOf(some["Role "+namespace+"/howdah-operator"])...)
		slices.Sort(both)
		if want := rulesOf(everywhere["ClusterRole howdah-operator"]); !slices.Equal(both, want) {
			t.Errorf("in %s the operator has other rights than it has everywhere without a list:\n%q\n%q", namespace, both, want)
		}
		if subjects := as[rbacv1.RoleBinding](t, some, "RoleBinding "+namespace+"/howdah-operator").Subjects; subjects[0].Namespace != system || subjects[0].Name != release {
			t.Errorf("the Role in %s is bound to %v", namespace, subjects)
		}
	}
	if args := operator(t, some).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--watch-namespaces=team-a,team-b") {
		t.Errorf("the operator has arguments %v", args)
	}
	warning := as[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, some, "ValidatingAdmissionPolicyBinding howdah-unwatched").Spec
	if !slices.Equal(warning.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}) ||
		!slices.Equal(warning.MatchResources.NamespaceSelector.MatchExpressions[0].Values, []string{"team-a", "team-b"}) {
		t.Errorf("who works elsewhere is warned so: %v", warning)
	}
	if all := rendered(t, "--set", "watchNamespaces={team-a},watchNamespacesWarning=false"); all["ValidatingAdmissionPolicyBinding howdah-unwatched"] != nil {
		t.Error("the warning can't be left out")
	}
	if everywhere["ValidatingAdmissionPolicyBinding howdah-unwatched"] != nil {
		t.Error("who works in a namespace of all is warned")
	}
}

// The two parts of the operator's role are all of it: make manifests makes them of config/rbac/role.yaml.
func TestThePartsOfTheRoleAreAllOfIt(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	whole := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &whole.Object); err != nil {
		t.Fatal(err)
	}
	if got, want := rulesOf(rendered(t)["ClusterRole howdah-operator"]), rulesOf(whole); !slices.Equal(got, want) {
		t.Errorf("the chart gives %q, controllers need %q", got, want)
	}
}

func TestLabelsAndAnnotationsReachEveryObject(t *testing.T) {
	for key, object := range rendered(t, "--set", "commonLabels.team=storage", "--set", `commonAnnotations.example\.com/owner=me`,
		"--set", "watchNamespaces={team-a}", "--set", "podDisruptionBudget.enabled=true,networkPolicies.enabled=true,provisioning.enabled=true,rook.enabled=true,failover.enabled=true,failover.volumes=true",
		"--set", "networkPolicies.metricsFromNamespaces={monitoring}",
		"--set", "monitoring.monitors.enabled=true,monitoring.rules.enabled=true,monitoring.dashboards.enabled=true") {
		if object.GetLabels()["team"] != "storage" || object.GetAnnotations()["example.com/owner"] != "me" {
			t.Errorf("%s has %v and %v", key, object.GetLabels(), object.GetAnnotations())
		}
		if object.GetLabels()["app.kubernetes.io/name"] != "howdah" || object.GetLabels()["helm.sh/chart"] == "" {
			t.Errorf("%s has lost the chart's labels: %v", key, object.GetLabels())
		}
		if object.GetKind() != "Deployment" {
			continue
		}
		labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
		if labels["team"] != "storage" || selector["team"] != "" {
			t.Errorf("pods have %v, and a selector, which can't change, %v", labels, selector)
		}
	}
}

// Pods of helm test are no operators: neither Service nor budget, policy or monitor may find them.
func TestTheTestPodIsNoOperator(t *testing.T) {
	all := rendered(t, "--set", "podDisruptionBudget.enabled=true,networkPolicies.enabled=true,test.share.name=data")
	labels := all["Pod howdah-system/howdah-test-share"].GetLabels()
	for what, selector := range map[string]map[string]string{
		"Service":    as[corev1.Service](t, all, "Service howdah-system/howdah-metrics").Spec.Selector,
		"Deployment": operator(t, all).Spec.Selector.MatchLabels,
		"budget":     as[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget howdah-system/howdah").Spec.Selector.MatchLabels,
		"policy":     as[networkingv1.NetworkPolicy](t, all, "NetworkPolicy howdah-system/howdah").Spec.PodSelector.MatchLabels,
	} {
		matches := true
		for key, value := range selector {
			matches = matches && labels[key] == value
		}
		if matches {
			t.Errorf("the %s finds the pod of helm test: %v", what, labels)
		}
	}
}

func TestSwitches(t *testing.T) {
	for what, tc := range map[string]struct {
		set  string
		want map[string]int
	}{
		"CRDs elsewhere":         {"crds.install=false", map[string]int{"CustomResourceDefinition": 0, "Deployment": 1}},
		"no roles for people":    {"rbac.aggregate=false", map[string]int{"ClusterRole": 3}},
		"an account elsewhere":   {"serviceAccount.create=false,serviceAccount.name=mine", map[string]int{"ServiceAccount": 0}},
		"a budget":               {"podDisruptionBudget.enabled=true", map[string]int{"PodDisruptionBudget": 1}},
		"provisioning":           {"provisioning.enabled=true", map[string]int{"ClusterRoleBinding": 2, "RoleBinding": 1}},
		"provisioning for one":   {"provisioning.enabled=true,watchNamespaces={a}", map[string]int{"ClusterRoleBinding": 1, "RoleBinding": 3}},
		"Rook":                   {"rook.enabled=true", map[string]int{"ClusterRole": 7, "ClusterRoleBinding": 2, "RoleBinding": 1}},
		"Rook in one of all":     {"rook.enabled=true,watchNamespaces={a}", map[string]int{"ClusterRoleBinding": 1, "RoleBinding": 3}},
		"failover":               {"failover.enabled=true", map[string]int{"ClusterRole": 7, "ClusterRoleBinding": 2, "Role": 2, "RoleBinding": 2}},
		"failover of volumes":    {"failover.enabled=true,failover.volumes=true", map[string]int{"ClusterRole": 8, "ClusterRoleBinding": 3}},
		"volumes in one":         {"failover.enabled=true,failover.volumes=true,watchNamespaces={a}", map[string]int{"ClusterRoleBinding": 2, "Role": 3, "RoleBinding": 4}},
		"failover in one":        {"failover.enabled=true,watchNamespaces={a}", map[string]int{"ClusterRoleBinding": 1, "Role": 3, "RoleBinding": 4}},
		"no network policies":    {"networkPolicies.enabled=false", map[string]int{"NetworkPolicy": 0}},
		"monitors":               {"monitoring.monitors.enabled=true,networkPolicies.metricsFromNamespaces={monitoring}", map[string]int{"ServiceMonitor": 1, "PodMonitor": 1, "PrometheusRule": 0}},
		"rules":                  {"monitoring.rules.enabled=true", map[string]int{"ServiceMonitor": 0, "PrometheusRule": 1}},
		"dashboards":             {"monitoring.dashboards.enabled=true", map[string]int{"ConfigMap": 4}},
		"one extra object":       {"extraObjects[0].kind=Secret,extraObjects[0].metadata.name=x", map[string]int{"Secret": 1}},
		"another name for it":    {"fullnameOverride=nfs", map[string]int{"Deployment": 1}},
		"two watched namespaces": {"watchNamespaces={a,b}", map[string]int{"Role": 3, "RoleBinding": 3, "ClusterRoleBinding": 1}},
	} {
		all := rendered(t, "--set", tc.set)
		for kind, want := range tc.want {
			if got := all.count(kind); got != want {
				t.Errorf("%s: %d objects of kind %s, want %d", what, got, kind, want)
			}
		}
	}
	args := operator(t, rendered(t, "--set", "networkPolicies.metricsFromNamespaces={monitoring}")).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--network-policies") || !slices.Contains(args, "--metrics-from-namespaces=monitoring") {
		t.Errorf("the operator makes no NetworkPolicies for servers: %v", args)
	}
}

// A version with build metadata has a plus sign, which labels can't have.
func TestLabelsOfEveryVersionAreLabels(t *testing.T) {
	folder := t.TempDir()
	helm := tool(t, "HELM", "helm")
	if _, err := command(t, helm, "package", chart, "--version", "1.2.3+build.5", "--app-version", "1.2.3+build.5", "--destination", folder); err != nil {
		t.Fatal(err)
	}
	text, err := command(t, helm, "template", release, filepath.Join(folder, "howdah-1.2.3+build.5.tgz"), "--namespace", system, "--set", "image.tag=a,serverImage.tag=a")
	if err != nil {
		t.Fatal(err)
	}
	for key, object := range decode(t, text) {
		for label, value := range object.GetLabels() {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%s has label %s: %q: %v", key, label, value, problems)
			}
		}
	}
}

// A release of another name installs beside one named howdah: no two objects have one name.
func TestTwoReleases(t *testing.T) {
	first := rendered(t)
	text, err := renders(t, "second", "--set", "crds.install=false")
	if err != nil {
		t.Fatal(err)
	}
	for key := range decode(t, text) {
		if first[key] != nil {
			t.Errorf("both releases have %s", key)
		}
	}
}

// Cilium's own kind is there where the cluster has it, and it is what kustomize's component has.
func TestNodesGetThroughCilium(t *testing.T) {
	const key = "CiliumClusterwideNetworkPolicy howdah-nodes"
	component, err := os.ReadFile(filepath.Join(top, "config", "components", "cilium", "nodes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with := rendered(t, "--api-versions", "cilium.io/v2/CiliumClusterwideNetworkPolicy")
	policy, made := with[key]
	if !made {
		t.Fatalf("there is no %s in %v", key, slices.Sorted(maps.Keys(with)))
	}
	if diff := cmp.Diff(decode(t, component)[key].Object["spec"], policy.Object["spec"]); diff != "" {
		t.Errorf("kustomize's differs from the chart's: %s", diff)
	}
	without := rendered(t, "--api-versions", "cilium.io/v2/CiliumClusterwideNetworkPolicy", "--set", "networkPolicies.enabled=false")
	if without.count("CiliumClusterwideNetworkPolicy") != 0 {
		t.Error("without NetworkPolicies nothing keeps nodes out")
	}
}
