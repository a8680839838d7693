{{- /*
What the schema can't say in words: each problem is a sentence with the value's name and what would be good. All of them
are collected and reported together.
*/ -}}
{{- define "howdah.problems" -}}
{{- $v := .Values -}}
{{- $problems := list -}}
{{- $label := "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" -}}
{{- $subdomain := "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" -}}

{{- $name := include "howdah.name" . -}}
{{- if or (gt (len $name) 50) (not (regexMatch $label $name)) -}}
{{- $problems = append $problems (printf "fullnameOverride is %q: give at most 50 small letters, digits and '-', such as howdah-team-a" $name) -}}
{{- end -}}
{{- $account := include "howdah.serviceAccount" . -}}
{{- if regexMatch "-(data|namespace)$" $account -}}
{{- $problems = append $problems (printf "release name %q: a name that ends in -data or -namespace makes the operator's account (%s) look like that of a server's pods; choose another, or serviceAccount.name" .Release.Name $account) -}}
{{- end -}}
{{- if not (regexMatch $subdomain $account) -}}
{{- $problems = append $problems (printf "serviceAccount.name is %q: that can't be the name of a ServiceAccount; give small letters, digits, '-' and '.'" $account) -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- $problems = append $problems "serviceAccount.create is false: name the ServiceAccount that there is in serviceAccount.name" -}}
{{- end -}}

{{- if and $v.imageRegistry (not (regexMatch "^[a-z0-9]+([._:-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?$" $v.imageRegistry)) -}}
{{- $problems = append $problems (printf "imageRegistry is %q: give a host, with a port and a path if need be, and no https:// in front, such as registry.example.com:5000/mirror" $v.imageRegistry) -}}
{{- end -}}
{{- range $field, $image := dict "image" $v.image "serverImage" $v.serverImage -}}
{{- if not (regexMatch "^([a-z0-9]+([._-]+[a-z0-9]+)*(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*$" $image.repository) -}}
{{- $problems = append $problems (printf "%s.repository is %q: give the repository alone, such as registry.example.com/howdah/howdah; a tag goes into %s.tag, a digest into %s.digest" $field $image.repository $field $field) -}}
{{- end -}}
{{- if not (regexMatch "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$" $image.tag) -}}
{{- $problems = append $problems (printf "%s.tag is %q: a tag has at most 128 letters, digits, '_', '.' and '-', such as 0.1.0" $field $image.tag) -}}
{{- end -}}
{{- if not (regexMatch "^(sha256:[0-9a-f]{64})?$" $image.digest) -}}
{{- $problems = append $problems (printf "%s.digest is %q: a digest is sha256: and 64 of 0 to 9 and a to f, as a registry or `skopeo inspect` tells it" $field $image.digest) -}}
{{- end -}}
{{- end -}}
{{- range $i, $secret := $v.imagePullSecrets -}}
{{- if or (gt (len $secret) 253) (not (regexMatch $subdomain $secret)) -}}
{{- $problems = append $problems (printf "imagePullSecrets[%d] is %q: give the name of a Secret: small letters, digits, '-' and '.'" $i $secret) -}}
{{- end -}}
{{- end -}}

{{- range $field, $namespaces := dict "watchNamespaces" $v.watchNamespaces "networkPolicies.metricsFromNamespaces" $v.networkPolicies.metricsFromNamespaces -}}
{{- range $i, $namespace := $namespaces -}}
{{- if or (gt (len $namespace) 63) (not (regexMatch $label $namespace)) -}}
{{- $problems = append $problems (printf "%s[%d] is %q: give the name of a Kubernetes namespace: at most 63 small letters, digits and '-'" $field $i $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.networkPolicies.enabled $v.monitoring.monitors.enabled (not $v.networkPolicies.metricsFromNamespaces) -}}
{{- $problems = append $problems "monitoring.monitors.enabled is true, and networkPolicies.metricsFromNamespaces is empty, so NetworkPolicies would keep Prometheus from all metrics: name the Kubernetes namespace that its pods are in, or set networkPolicies.enabled=false" -}}
{{- end -}}
{{- range $field, $name := dict "test.share.namespace" $v.test.share.namespace "test.share.name" $v.test.share.name -}}
{{- if and $name (not (regexMatch $label $name)) -}}
{{- $problems = append $problems (printf "%s is %q: a name like that does not exist: small letters, digits and '-'" $field $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.test.share.namespace (not $v.test.share.name) -}}
{{- $problems = append $problems (printf "test.share.namespace is %q: name a FileShare of it in test.share.name, too" $v.test.share.namespace) -}}
{{- end -}}

{{- $mine := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- range $field, $labels := dict "commonLabels" $v.commonLabels "podLabels" $v.podLabels -}}
{{- range $key, $_ := $labels -}}
{{- if has $key $mine -}}
{{- $problems = append $problems (printf "%s has %q: the chart gives that label itself, and finds its objects by it; choose another key" $field $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- range $field, $labels := dict "commonLabels" $v.commonLabels "podLabels" $v.podLabels "nodeSelector" $v.nodeSelector "monitoring.labels" $v.monitoring.labels -}}
{{- range $key, $value := $labels -}}
{{- if or (gt (len $value) 63) (not (regexMatch "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$" $value)) -}}
{{- $problems = append $problems (printf "%s.%s is %q: the value of a label has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or a digit" $field $key $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.priorityClassName (not (regexMatch $subdomain $v.priorityClassName)) -}}
{{- $problems = append $problems (printf "priorityClassName is %q: give the name of a PriorityClass: small letters, digits, '-' and '.'" $v.priorityClassName) -}}
{{- end -}}

{{- range $section, $resources := $v.resources -}}
{{- range $key, $value := $resources -}}
{{- $text := toString $value -}}
{{- if not (or (has $key (list "cpu" "memory" "ephemeral-storage")) (contains "/" $key) (hasPrefix "hugepages-" $key)) -}}
{{- $problems = append $problems (printf "resources.%s has %q: there are cpu, memory and ephemeral-storage, and names with a domain in front" $section $key) -}}
{{- else if and (eq $key "memory") (regexMatch "^[1-9][0-9]{0,6}$" (ternary $text (int64 $value | toString) (kindIs "string" $value))) -}}
{{- $problems = append $problems (printf "resources.%s.memory is %q: a number alone is bytes, and that is too little; give a unit, such as 512Mi" $section $text) -}}
{{- else if and (eq $key "memory") (regexMatch "^[0-9.]+m$" $text) -}}
{{- $problems = append $problems (printf "resources.%s.memory is %q: m is a thousandth of a byte; give another unit, such as 512Mi" $section $text) -}}
{{- else if not (regexMatch "^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$" $text) -}}
{{- $problems = append $problems (printf "resources.%s.%s is %q: give a Kubernetes quantity without a space, such as %s" $section $key $text (ternary "500m" "512Mi" (eq $key "cpu"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- $interval := $v.monitoring.monitors.interval -}}
{{- if not (regexMatch "^([1-9][0-9]*(ms|s|m|h))?$" $interval) -}}
{{- $problems = append $problems (printf "monitoring.monitors.interval is %q: give a number with ms, s, m or h, such as 30s" $interval) -}}
{{- end -}}
{{- $away := $v.podDisruptionBudget.maxUnavailable -}}
{{- if and (kindIs "string" $away) (not (regexMatch "^([1-9][0-9]?|100)%$" $away)) -}}
{{- $problems = append $problems (printf "podDisruptionBudget.maxUnavailable is %q: give a number of at least 1, or a percentage such as 50%%" $away) -}}
{{- end -}}
{{- toYaml $problems -}}
{{- end -}}
