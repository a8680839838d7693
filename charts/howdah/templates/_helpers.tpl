{{- define "howdah.name" -}}
{{- if contains "howdah" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-howdah" (.Release.Name | trunc 43 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "howdah.selector" -}}
app.kubernetes.io/name: howdah
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "howdah.labels" -}}
{{ include "howdah.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "howdah.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "howdah.serverImage" -}}
{{ .Values.serverImage.repository }}:{{ .Values.serverImage.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /*
howdah.rules takes (dict "files" .Files "cluster" true|false) and gives the rules of the
generated role that are about objects without a namespace (cluster true) or with one (false).
controller-gen joins resources of both sorts in one rule, so rules are split by resource.
*/ -}}
{{- define "howdah.rules" -}}
{{- $clusterScoped := list "nodes" "persistentvolumes" "storageclasses" "namespaces" "tokenreviews" "subjectaccessreviews" -}}
{{- $role := .files.Get "files/rbac/role.yaml" | fromYaml -}}
{{- $rules := list -}}
{{- range $rule := $role.rules -}}
{{- $resources := list -}}
{{- range $resource := $rule.resources -}}
{{- if eq (has (splitList "/" $resource | first) $clusterScoped) $.cluster -}}
{{- $resources = append $resources $resource -}}
{{- end -}}
{{- end -}}
{{- if $resources -}}
{{- $rules = append $rules (set (deepCopy $rule) "resources" $resources) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}
