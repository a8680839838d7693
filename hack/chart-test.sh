#!/usr/bin/env bash
# Checks the chart without a cluster: that it renders, that what it must not contain
# is not there, and that bad values are refused with a message that names them.
# Against a real API server it is checked by test/install.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/environment.sh
helm=$(hack/tools/build.sh helm)
failures=0

fail() {
  echo "chart-test: $*" >&2
  failures=$((failures + 1))
}

render() { "$helm" template howdah charts/howdah --namespace howdah-system "$@"; }

# has WHAT PATTERN COUNT [values…]: the rendered chart has lines like PATTERN so many times.
has() {
  local what=$1 pattern=$2 count=$3 found
  shift 3
  found=$(render "$@" | grep -cE -- "$pattern" || true)
  [ "$found" -eq "$count" ] || fail "$what: $found lines like '$pattern', want $count ($*)"
}

# refused WHAT MESSAGE values…: the chart does not render, and says why.
refused() {
  local what=$1 message=$2 output
  shift 2
  if output=$(render "$@" 2>&1); then
    fail "$what is accepted ($*)"
  elif ! grep -qE -- "$message" <<<"$output"; then
    fail "$what is refused without '$message': $output"
  fi
}

"$helm" lint --strict --quiet charts/howdah

has "CRDs are installed" '^kind: CustomResourceDefinition$' 7
has "a lost node loses the operator soon" 'effect: NoExecute, tolerationSeconds: 10' 2
has "a user's tolerations come on top" 'effect: NoExecute, tolerationSeconds: 10|^      - key: dedicated$' 3 --set 'tolerations[0].key=dedicated'
has "CRDs outlive the release" '^    helm.sh/resource-policy: keep$' 7
has "CRDs can be left out" '^kind: CustomResourceDefinition$' 0 --set crds.install=false
has "the operator may work everywhere" '^kind: Role$' 1
has "the operator gets a Role in each watched namespace" '^kind: Role$' 3 --set 'watchNamespaces={team-a,team-b}'
has "who works in another namespace is warned" '^  validationActions: \[Warn\]$|^        - team-[ab]$' 3 --set 'watchNamespaces={team-a,team-b}'
has "nobody is warned where all are watched" 'validationActions: \[Warn\]' 0
has "the warning can be left out" 'validationActions: \[Warn\]' 0 --set 'watchNamespaces={team-a}',watchNamespacesWarning=false
has "the operator is told the namespaces" '--watch-namespaces=team-a,team-b$' 1 --set 'watchNamespaces={team-a,team-b}'
has "server pods are held to what is theirs" "^kind: ValidatingAdmissionPolicy$" 2
has "and these policies deny" "^  validationActions: \[Deny\]$" 2
has "no root" 'runAsNonRoot: true' 1
has "no writable root file system" 'readOnlyRootFilesystem: true' 1
has "no capabilities" 'drop: \[ALL\]' 1
has "no wildcard in the rights" "^ *- ['\"]?\*['\"]?$" 0
has "images follow the chart's version" 'image: howdah/howdah:[0-9]' 1
has "images can be named" 'image: registry.example:5000/a/b:c$' 1 --set image.repository=registry.example:5000/a/b,image.tag=c
has "data servers' image is handed on" '--server-image=x/y:z$' 1 --set serverImage.repository=x/y,serverImage.tag=z

has "people get roles" 'rbac.authorization.k8s.io/aggregate-to-(view|edit|admin): "true"$' 3
has "people's roles can be left out" 'rbac.authorization.k8s.io/aggregate-to-' 0 --set rbac.aggregate=false
has "no NetworkPolicy unless asked for" '^kind: NetworkPolicy$|--network-policies' 0
has "NetworkPolicies, also by the operator" '^kind: NetworkPolicy$|--network-policies$' 2 --set networkPolicies.enabled=true
has "monitoring gets in" 'kubernetes.io/metadata.name: monitoring$|--metrics-from-namespaces=monitoring$' 2 --set networkPolicies.enabled=true,'networkPolicies.metricsFromNamespaces={monitoring}'
has "metrics are judged by the API server in every namespace" '^ *- (tokenreviews|subjectaccessreviews)$' 2 --set 'watchNamespaces={team-a,team-b}'
has "no monitors, rules or dashboards unless asked for" '^kind: (ServiceMonitor|PodMonitor|PrometheusRule)$|grafana_dashboard' 0
has "monitors" '^kind: (ServiceMonitor|PodMonitor)$' 2 --set monitoring.monitors.enabled=true
has "the namespaces of servers that are watched" '^    - team-a$' 1 --set monitoring.monitors.enabled=true,'watchNamespaces={team-a}'
has "labels that Prometheus selects by" '^    release: prometheus$' 3 --set monitoring.monitors.enabled=true,monitoring.rules.enabled=true,monitoring.labels.release=prometheus
has "alerts" '^ *- alert: Howdah' 23 --set monitoring.rules.enabled=true
has "dashboards" '^    grafana_dashboard: "1"$' 4 --set monitoring.dashboards.enabled=true
refused "an interval that Prometheus does not know" "interval" --set monitoring.monitors.interval=often
refused "a switch as text" "networkPolicies" --set-string networkPolicies.enabled=yes
refused "a namespace of monitoring that can't be one" "metricsFromNamespaces" --set 'networkPolicies.metricsFromNamespaces={Team_A}'
if output=$("$helm" template howdah-data charts/howdah 2>&1) || ! grep -q "choose another" <<<"$output"; then
  fail "an operator named like the account of data servers is not refused: $output"
fi
"$helm" template data charts/howdah >/dev/null || fail "a release named data can't be installed"
refused "an unknown value" "additional properties 'replica'|replica.*not allowed" --set replica=2
refused "an unknown value further down" "pullpolicy" --set image.pullpolicy=Always
refused "no replicas" "replicas" --set replicas=0
refused "a number as text" "replicas" --set-string replicas=2
refused "a pull policy that Kubernetes does not have" "pullPolicy" --set image.pullPolicy=Sometimes
refused "a tag in the repository" "repository" --set image.repository='howdah/howdah:1 x'
refused "a tag with a space" "tag" --set image.tag='a b'
refused "namespaces as one text" "watchNamespaces" --set watchNamespaces=team-a
refused "a namespace that can't be one" "watchNamespaces" --set 'watchNamespaces={Team_A}'
refused "the same namespace twice" "watchNamespaces" --set 'watchNamespaces={a,a}'
refused "an unknown log level" "logLevel" --set logLevel=verbose
refused "an unknown resource section" "resources" --set resources.request.cpu=1
refused "an unknown toleration effect" "tolerations" --set 'tolerations[0].effect=Never'
refused "a node selector that is no text" "nodeSelector" --set nodeSelector.gpu=true

# What the chart and the kustomize base give the operator must not drift apart.
arguments() { grep -E '^ *- --' | sed 's/^ *- //' | sort; }
if ! difference=$(diff <(render -s templates/deployment.yaml | arguments) <(arguments <config/operator/deployment.yaml)); then
  fail "the chart and config/operator start the operator differently:
$difference"
fi

[ "$failures" -eq 0 ] || exit 1
echo "chart-test: good"
