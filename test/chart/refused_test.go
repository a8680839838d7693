package chart

import (
	"strings"
	"testing"
)

// Bad values are refused with the name of the value and with what would be good.
func TestBadValuesAreRefused(t *testing.T) {
	for what, tc := range map[string]struct {
		args []string
		// want are parts of the message.
		want []string
	}{
		"an unknown value":                        {[]string{"--set", "replica=2"}, []string{"replica"}},
		"an unknown value further down":           {[]string{"--set", "image.pullpolicy=Always"}, []string{"/image", "pullpolicy"}},
		"an unknown field of an affinity":         {[]string{"--set", "affinity.podAntiAfinity=x"}, []string{"/affinity", "podAntiAfinity"}},
		"no replicas":                             {[]string{"--set", "replicas=0"}, []string{"/replicas", "want 1"}},
		"a number as text":                        {[]string{"--set-string", "replicas=2"}, []string{"/replicas", "want integer"}},
		"a switch as text":                        {[]string{"--set-string", "networkPolicies.enabled=yes"}, []string{"/networkPolicies/enabled", "want boolean"}},
		"a pull policy that Kubernetes hasn't":    {[]string{"--set", "image.pullPolicy=Sometimes"}, []string{"/image/pullPolicy", "'IfNotPresent'"}},
		"an unknown log level":                    {[]string{"--set", "logLevel=verbose"}, []string{"/logLevel", "'debug'"}},
		"an unknown resource section":             {[]string{"--set", "resources.request.cpu=1"}, []string{"/resources", "request"}},
		"an unknown toleration effect":            {[]string{"--set", "tolerations[0].effect=Never"}, []string{"/tolerations/0/effect"}},
		"a spread constraint without a key":       {[]string{"--set", "topologySpreadConstraints[0].maxSkew=1"}, []string{"/topologySpreadConstraints/0", "topologyKey"}},
		"a node selector that is no text":         {[]string{"--set", "nodeSelector.gpu=true"}, []string{"/nodeSelector/gpu"}},
		"an operator that runs as root":           {[]string{"--set", "podSecurityContext.runAsUser=0"}, []string{"/podSecurityContext/runAsUser"}},
		"namespaces as one text":                  {[]string{"--set", "watchNamespaces=team-a"}, []string{"/watchNamespaces", "want array"}},
		"the same namespace twice":                {[]string{"--set", "watchNamespaces={a,a}"}, []string{"/watchNamespaces"}},
		"a budget of nothing":                     {[]string{"--set", "podDisruptionBudget.maxUnavailable=0"}, []string{"/podDisruptionBudget/maxUnavailable"}},
		"a budget in words":                       {[]string{"--set", "podDisruptionBudget.maxUnavailable=some"}, []string{`podDisruptionBudget.maxUnavailable is "some"`, "50%"}},
		"a namespace that can't be one":           {[]string{"--set", "watchNamespaces={a,Team_A}"}, []string{`watchNamespaces[1] is "Team_A"`, "small letters"}},
		"monitors that policies keep out":         {[]string{"--set", "monitoring.monitors.enabled=true"}, []string{"networkPolicies.metricsFromNamespaces is empty", "name the Kubernetes namespace"}},
		"a namespace of monitoring that can't be": {[]string{"--set", "networkPolicies.metricsFromNamespaces={Team_A}"}, []string{`networkPolicies.metricsFromNamespaces[0] is "Team_A"`}},
		"an interval that Prometheus hasn't":      {[]string{"--set", "monitoring.monitors.interval=often"}, []string{`monitoring.monitors.interval is "often"`, "30s"}},
		"a tag in the repository":                 {[]string{"--set", "image.repository=howdah/howdah:1"}, []string{`image.repository is "howdah/howdah:1"`, "a tag goes into image.tag"}},
		"a digest in the repository":              {[]string{"--set", "serverImage.repository=x@sha256:1"}, []string{"serverImage.repository is", "serverImage.digest"}},
		"a tag with a space":                      {[]string{"--set", "image.tag=a b"}, []string{`image.tag is "a b"`}},
		"a digest that is cut":                    {[]string{"--set", "image.digest=sha256:abc"}, []string{`image.digest is "sha256:abc"`, "64"}},
		"a registry with a scheme":                {[]string{"--set", "imageRegistry=https://registry.example.com"}, []string{"imageRegistry is", "no https://"}},
		"a pull secret that can't be one":         {[]string{"--set", "imagePullSecrets={My_Secret}"}, []string{`imagePullSecrets[0] is "My_Secret"`}},
		"a label of the chart's":                  {[]string{"--set", `commonLabels.app\.kubernetes\.io/name=x`}, []string{`commonLabels has "app.kubernetes.io/name"`}},
		"a label of the pods that is the chart's": {[]string{"--set", `podLabels.app\.kubernetes\.io/component=x`}, []string{"podLabels has"}},
		"an account without a name":               {[]string{"--set", "serviceAccount.create=false"}, []string{"name the ServiceAccount that there is in serviceAccount.name"}},
		"an account like that of servers":         {[]string{"--set", "serviceAccount.name=training-data"}, []string{"choose another", "training-data"}},
		"a name that is too long":                 {[]string{"--set", "fullnameOverride=" + strings.Repeat("a", 51)}, []string{"fullnameOverride is", "at most 50"}},
		"a namespace of the test without a share": {[]string{"--set", "test.share.namespace=team-a"}, []string{"name a FileShare of it in test.share.name"}},
		"values of a chart that had fewer":        {[]string{"--set", "podDisruptionBudget=null,test=null"}, []string{"missing", "'podDisruptionBudget'", "'test'"}},
		"memory of some bytes":                    {[]string{"--set", "resources.limits.memory=512"}, []string{`resources.limits.memory is "512"`, "512Mi"}},
		"memory of thousandths of a byte":         {[]string{"--set", "resources.requests.memory=512m"}, []string{`resources.requests.memory is "512m"`, "512Mi"}},
		"memory with a space":                     {[]string{"--set", "resources.limits.memory=512 MB"}, []string{`resources.limits.memory is "512 MB"`, "512Mi"}},
		"a resource that is misspelt":             {[]string{"--set", "resources.limits.memroy=512Mi"}, []string{`resources.limits has "memroy"`, "cpu, memory"}},
		"a PriorityClass that can't be one":       {[]string{"--set", "priorityClassName=My Class"}, []string{`priorityClassName is "My Class"`}},
		"a label of pods that can't be one":       {[]string{"--set", "podLabels.team=a b"}, []string{`podLabels.team is "a b"`}},
		"a label of nodes that can't be one":      {[]string{"--set", "nodeSelector.zone=a b"}, []string{`nodeSelector.zone is "a b"`}},
		"two mistakes at once":                    {[]string{"--set", "image.tag=a b,imageRegistry=X"}, []string{`image.tag is "a b"`, `imageRegistry is "X"`}},
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, release, tc.args, tc.want...)
		})
	}
	// It would look like the account of a FileServer's data servers.
	refused(t, "howdah-data", nil, "choose another")
	if _, err := renders(t, "data"); err != nil {
		t.Errorf("a release named data can't be installed: %v", err)
	}
}

func refused(t *testing.T, name string, args []string, want ...string) {
	t.Helper()
	_, err := renders(t, name, args...)
	if err == nil {
		t.Errorf("%v is accepted", args)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v is refused without %q: %v", args, part, err)
		}
	}
	// Users should not have to read a regular expression.
	if strings.Contains(err.Error(), "does not match pattern") {
		t.Errorf("%v is refused with a regular expression: %v", args, err)
	}
}
