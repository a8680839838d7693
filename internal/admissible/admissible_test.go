package admissible

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
)

// parse reads a specification as a user writes it.
func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	spec := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}

// TestAFaultNamesFieldValueAndWhatToDo has one row for each kind of mistake. Whether the API server agrees is a matter of test/integration.
func TestAFaultNamesFieldValueAndWhatToDo(t *testing.T) {
	const aLabel = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', or '12345')"
	const aName = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc')"
	const required = "requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
	const inRequired = "spec.placement.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	const preferred = "preferredDuringSchedulingIgnoredDuringExecution: "
	const inPreferred = "spec.placement.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
	for spec, want := range map[string]string{
		"{}": "",
		"{placement: {nodeSelector: {disk: ssd}, topologyKey: example.org/rack}, resources: {limits: {memory: 1Gi}}, network: {loadBalancer: {}}}": "",

		"placement: {nodeSelector: {disk: my disk}}":                                                     `spec.placement.nodeSelector[disk]: "my disk" can't be used: ` + aLabel,
		"placement: {nodeSelector: {my disk: my disk}}":                                                  `spec.placement.nodeSelector: "my disk" can't be used: ` + aName,
		"placement: {nodeSelector: {disk: " + strings.Repeat("s", 100) + "}}":                            `spec.placement.nodeSelector[disk]: "` + strings.Repeat("s", 64) + `"… (100 characters) can't be used: must be no more than 63 bytes`,
		"placement: {nodeSelector: {\"\": ssd}}":                                                         `spec.placement.nodeSelector: "" can't be used: name part must be non-empty`,
		"placement: {nodeSelector: {disk: \"a\\e\\u202e\"}}":                                             `spec.placement.nodeSelector[disk]: "a\x1b\u202e" can't be used: ` + aLabel,
		"placement: {nodeSelector: {e: a b, d: a b, c: a b, b: a b, a: \"\"}}":                           `spec.placement.nodeSelector[b]: "a b" can't be used: ` + aLabel + `; spec.placement.nodeSelector[c]: "a b" can't be used: ` + aLabel + `; spec.placement.nodeSelector[d]: "a b" can't be used: ` + aLabel + `; and 1 more`,
		"namespaceServers: {placement: {nodeSelector: {disk: my disk}}}":                                 `spec.namespaceServers.placement.nodeSelector[disk]: "my disk" can't be used: ` + aLabel,
		"placement: {tolerations: [{operator: Exists}, {key: a, value: b c}]}":                           `spec.placement.tolerations[1].value: "b c" can't be used: ` + aLabel,
		"placement: {tolerations: [{key: my taint, operator: Exists}]}":                                  `spec.placement.tolerations[0].key: "my taint" can't be used: ` + aName,
		"placement: {tolerations: [{value: a}]}":                                                         `spec.placement.tolerations[0].key: a toleration without a key must have the operator Exists: it is for all taints then`,
		"placement: {tolerations: [{key: a, value: \"7x\", operator: Gt}]}":                              `spec.placement.tolerations[0].value: "7x" can't be used: must be a valid decimal integer in canonical form`,
		"placement: {tolerations: [{key: a, value: \"" + strings.Repeat("9", 20) + "\", operator: Lt}]}": `spec.placement.tolerations[0].value: "99999999999999999999" can't be used: it must be an integer of 64 bits`,
		"placement: {tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}]}":                   `spec.placement.tolerations[0].tolerationSeconds: "5" can't be used: it goes with the effect NoExecute: leave it out, or set the effect`,

		"placement: {nodeAffinity: {" + required + "[]}}}":                                                                                     inRequired + `: there must be at least one term: add one, or leave nodeAffinity out`,
		"placement: {nodeAffinity: {" + required + "[{}, {matchExpressions: [{key: a, operator: In, values: [b, c d]}]}]}}}":                   inRequired + `[1].matchExpressions[0].values[1]: "c d" can't be used: ` + aLabel,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a b, operator: Exists}]}]}}}":                                   inRequired + `[0].matchExpressions[0].key: "a b" can't be used: ` + aName,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a, operator: in, values: [b]}]}]}}}":                            inRequired + `[0].matchExpressions[0].operator: "in" can't be used: supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a, operator: In}]}]}}}":                                         inRequired + `[0].matchExpressions[0].values: [] can't be used: for 'in', 'notin' operators, values set can't be empty`,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}}":                        inRequired + `[0].matchExpressions[0].values: ["b"] can't be used: values set must be empty for exists and does not exist`,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a, operator: Gt, values: [many]}]}]}}}":                         inRequired + `[0].matchExpressions[0].values[0]: "many" can't be used: for 'Gt', 'Lt' operators, the value must be an integer`,
		"placement: {nodeAffinity: {" + required + "[{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}]}}}":                      inRequired + `[0].matchFields[0].key: "metadata.uid" can't be used: supported values: "metadata.name"`,
		"placement: {nodeAffinity: {" + required + "[{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}}":                  inRequired + `[0].matchFields[0].values: ["a", "b"] can't be used: must have one element`,
		"placement: {nodeAffinity: {" + required + "[{matchExpressions: [{key: a, operator: Exists, values: [b, c, d, e]}]}]}}}":               inRequired + `[0].matchExpressions[0].values: ["b", "c", "d", …] can't be used: values set must be empty for exists and does not exist`,
		"placement: {nodeAffinity: {" + required + "[{matchFields: [{key: metadata.name, operator: In, values: [Node 1]}]}]}}}":                inRequired + `[0].matchFields[0].values[0]: "Node 1" can't be used: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com')`,
		"placement: {nodeAffinity: {" + preferred + "[{weight: 101, preference: {}}]}}":                                                        inPreferred + `[0].weight: "101" can't be used: it must be from 1 to 100`,
		"placement: {nodeAffinity: {" + preferred + "[{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: [b c]}]}}]}}": inPreferred + `[0].preference.matchExpressions[0].values[0]: "b c" can't be used: ` + aLabel,

		"pods: {labels: {team: a team}}":                                                                         `spec.pods.labels[team]: "a team" can't be used: ` + aLabel,
		"pods: {annotations: {Example.org/a note: a}}":                                                           `spec.pods.annotations: "Example.org/a note" can't be used: ` + aName,
		"pods: {annotations: {large: " + strings.Repeat("a", 256<<10) + "}}":                                     `spec.pods.annotations: may not be more than 262144 bytes`,
		"pods: {annotations: {kubernetes.io/config.mirror: a}}":                                                  `spec.pods.annotations[kubernetes.io/config.mirror]: "a" can't be used: only the kubelet sets this annotation: leave it out`,
		"pods: {annotations: {controller.kubernetes.io/pod-deletion-cost: low}}":                                 `spec.pods.annotations[controller.kubernetes.io/pod-deletion-cost]: "low" can't be used: it must be an integer of 32 bits`,
		"pods: {annotations: {scheduler.alpha.kubernetes.io/tolerations: \"[{}]\"}}":                             `spec.pods.annotations[scheduler.alpha.kubernetes.io/tolerations]: "[{}]" can't be used: no scheduler reads this annotation: leave it out, and use tolerations of placement`,
		"pods: {annotations: {seccomp.security.alpha.kubernetes.io/pod: unconfined}}":                            `spec.pods.annotations[seccomp.security.alpha.kubernetes.io/pod]: "unconfined" can't be used: the pods have the profile runtime/default: leave this annotation out`,
		"pods: {annotations: {container.seccomp.security.alpha.kubernetes.io/server: none}}":                     `spec.pods.annotations[container.seccomp.security.alpha.kubernetes.io/server]: "none" can't be used: it must be runtime/default, unconfined or localhost/PROFILE`,
		"pods: {annotations: {container.apparmor.security.beta.kubernetes.io/ganesha: unconfined}}":              `spec.pods.annotations[container.apparmor.security.beta.kubernetes.io/ganesha]: "unconfined" can't be used: the pods have no such container: write container.apparmor.security.beta.kubernetes.io/server`,
		"pods: {annotations: {container.apparmor.security.beta.kubernetes.io/server: none}}":                     `spec.pods.annotations[container.apparmor.security.beta.kubernetes.io/server]: "none" can't be used: it must be runtime/default, unconfined or localhost/PROFILE`,
		"pods: {annotations: {container.apparmor.security.beta.kubernetes.io/server: runtime/default, a: \"\"}}": "",

		"resources: {requests: {nvidia.com/gpu: 1}}":                                `spec.resources.limits[nvidia.com/gpu]: there must be a limit, equal to the request: this resource can't be shared`,
		"resources: {requests: {example.com/nic: 1}, limits: {example.com/nic: 2}}": `spec.resources.requests[example.com/nic]: "1" can't be used: it must be equal to the limit, 2: this resource can't be shared`,
		"resources: {limits: {example.com/nic: 500m}}":                              `spec.resources.limits[example.com/nic]: "500m" can't be used: it must be an integer`,
		"resources: {limits: {gpu: 1}}":                                             `spec.resources.limits: "gpu" can't be used: a container has cpu, memory, ephemeral-storage, hugepages-SIZE, and resources with a domain in their names, such as example.com/nic`,
		"resources: {limits: {requests.example.com/nic: 1}}":                        `spec.resources.limits: "requests.example.com/nic" can't be used: leave requests. out: only a ResourceQuota has it`,
		"resources: {requests: {cpu: -1}}":                                          `spec.resources.requests[cpu]: "-1" can't be used: it must not be below 0`,
		"resources: {limits: {hugepages-2Mi: 3Mi}}":                                 `spec.resources.limits[hugepages-2Mi]: "3Mi" can't be used: it must be a multiple of the size in the name`,
		"namespaceServers: {resources: {limits: {hugepages-: 3Mi}}}":                `spec.namespaceServers.resources.limits: "hugepages-" can't be used: ` + aName,
		"network: {loadBalancer: {labels: {pool: a b}}}":                            `spec.network.loadBalancer.labels[pool]: "a b" can't be used: ` + aLabel,
		"network: {loadBalancer: {annotations: {a b: c}}}":                          `spec.network.loadBalancer.annotations: "a b" can't be used: ` + aName,

		"network: {loadBalancer: {annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: \"10.0.0.0/8, all\"}}}": `spec.network.loadBalancer.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: "all" can't be used: must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,

		"network: {loadBalancer: {annotations: {service.kubernetes.io/topology-mode: Auto, service.kubernetes.io/topology-aware-hints: auto}}}": `spec.network.loadBalancer.annotations[service.kubernetes.io/topology-mode]: "Auto" can't be used: it must be equal to the annotation service.kubernetes.io/topology-aware-hints if both are set: leave that out`,
	} {
		if got := Text(FileServer(parse[v1alpha1.FileServerSpec](t, spec)).All()); got != want {
			t.Errorf("%.200s\ngot  %s\nwant %s", spec, got, want)
		}
	}
}

func TestFaultsAreOfTheChildrenThatTheyAreIn(t *testing.T) {
	for spec, want := range map[string]string{
		"placement: {nodeSelector: {a: b c}}":                                 "data servers",
		"resources: {requests: {cpu: -1}}":                                    "data servers",
		"pods: {labels: {a: b c}}":                                            "all pods",
		"namespaceServers: {placement: {tolerations: [{}]}}":                  "namespace servers",
		"namespaceServers: {resources: {limits: {gpu: 1}}}":                   "namespace servers",
		"network: {loadBalancer: {annotations: {a b: c}, labels: {a: \"\"}}}": "outside",
	} {
		faults := FileServer(parse[v1alpha1.FileServerSpec](t, spec))
		for children, found := range map[string]field.ErrorList{
			"data servers": faults.DataServers, "all pods": faults.Pods, "namespace servers": faults.NamespaceServers, "outside": faults.Outside,
		} {
			if len(found) > 0 != (children == want) {
				t.Errorf("%s, %s: %v", spec, children, found)
			}
		}
	}
}

func TestAFamilyThatTheClusterLacksIsNamed(t *testing.T) {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	refused := func(family string) string {
		return `spec.network.loadBalancer.ipFamilyPolicy: "RequireDualStack" can't be used: Services of this cluster have ` + family +
			` addresses only: use PreferDualStack, or have the API server give Services addresses of both families`
	}
	for name, tc := range map[string]struct {
		network  string
		families []corev1.IPFamily
		want     string
	}{
		"both are needed, one is there":      {"{loadBalancer: {ipFamilyPolicy: RequireDualStack}}", []corev1.IPFamily{v4}, refused("IPv4")},
		"both are needed, the other is":      {"{loadBalancer: {ipFamilyPolicy: RequireDualStack}}", []corev1.IPFamily{v6}, refused("IPv6")},
		"both are there":                     {"{loadBalancer: {ipFamilyPolicy: RequireDualStack}}", []corev1.IPFamily{v6, v4}, ""},
		"what is there is not known":         {"{loadBalancer: {ipFamilyPolicy: RequireDualStack}}", nil, ""},
		"both are preferred":                 {"{loadBalancer: {ipFamilyPolicy: PreferDualStack}}", []corev1.IPFamily{v4}, ""},
		"the policy is the API server's own": {"{loadBalancer: {}}", []corev1.IPFamily{v4}, ""},
		"no Services for clients outside":    {"{}", []corev1.IPFamily{v4}, ""},
	} {
		if got := Text(Families(parse[v1alpha1.FileServerSpec](t, "network: "+tc.network), tc.families)); got != tc.want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestAJobIsCheckedAsAFileServerIs(t *testing.T) {
	for spec, want := range map[string]string{
		"placement: {nodeSelector: {disk: ssd}}":                                                      "",
		"placement: {tolerations: [{}]}":                                                              "spec.placement.tolerations[0].key",
		"pods: {labels: {a: b c}}":                                                                    "spec.pods.labels[a]",
		"pods: {labels: {job-name: a}}":                                                               `spec.pods.labels[job-name]: "a" can't be used: Kubernetes sets this label: leave it out`,
		"resources: {requests: {nvidia.com/gpu: 1}}":                                                  "spec.resources.limits[nvidia.com/gpu]",
		"resources: {limits: {hugepages-2Mi: 2Mi}}":                                                   "spec.resources: huge pages need a request or limit of cpu or memory beside them",
		"resources: {limits: {hugepages-2Mi: 2Mi}, requests: {cpu: 1}}":                               "",
		"pods: {annotations: {container.apparmor.security.beta.kubernetes.io/benchmark: unconfined}}": "",
	} {
		if got := Text(Job(parse[v1alpha1.MLPerfStorageJobSpec](t, spec))); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s\ngot  %s\nwant %s", spec, got, want)
		}
	}
}

func TestPodsCanNotHaveEveryOwnerThatFilesCanHave(t *testing.T) {
	for uid, want := range map[int64]string{
		0: "", 1<<31 - 1: "",
		1 << 31: `spec.uid: "2147483648" can't be used: must be between 0 and 2147483647, inclusive`,
	} {
		if got := Text(Owner(&v1alpha1.FileShareSpec{UID: ptr.To(uid), GID: ptr.To[int64](0)})); got != want {
			t.Errorf("%d: %s", uid, got)
		}
	}
	if got := Text(Owner(&v1alpha1.FileShareSpec{GID: ptr.To[int64](1 << 31)})); !strings.HasPrefix(got, "spec.gid:") {
		t.Errorf("a group: %s", got)
	}
}

func TestHugeQuantitiesAreNoMultiplesByChance(t *testing.T) {
	set := &corev1.ResourceRequirements{Limits: corev1.ResourceList{"hugepages-0": resource.MustParse("1"), "hugepages-1m": resource.MustParse("1")}}
	if got := resources(set, field.NewPath("r")); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
