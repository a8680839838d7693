{{- define "howdah.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "howdah" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-howdah" (.Release.Name | trunc 43 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "howdah.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "howdah.name" .) -}}
{{- end -}}

{{- define "howdah.selector" -}}
app.kubernetes.io/name: howdah
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "howdah.labels" -}}
{{ include "howdah.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /*
howdah.labelsOf and howdah.annotationsOf take (dict "root" $) and give the labels and annotations of an object, with those
of the dicts "labels" and "annotations" beside the common ones.
*/ -}}
{{- define "howdah.labelsOf" -}}
{{- toYaml (merge (include "howdah.labels" .root | fromYaml) (.labels | default dict) .root.Values.commonLabels) -}}
{{- end -}}

{{- define "howdah.annotationsOf" -}}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- /* howdah.metadata is both. Labels come last: those of a generated file go on there. */ -}}
{{- define "howdah.metadata" -}}
{{- with include "howdah.annotationsOf" . -}}
annotations: {{- . | nindent 2 }}
{{ end -}}
labels: {{- include "howdah.labelsOf" . | nindent 2 }}
{{- end -}}

{{- /* howdah.image takes (dict "root" $ "image" an image's values) and gives the image's name. */ -}}
{{- define "howdah.image" -}}
{{- $repository := .image.repository -}}
{{- with .root.Values.imageRegistry -}}
{{- $first := splitList "/" $repository | first -}}
{{- if and (contains "/" $repository) (or (regexMatch "[.:]" $first) (eq $first "localhost")) -}}
{{- $repository = trimPrefix (printf "%s/" $first) $repository -}}
{{- end -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- $tag := .image.tag -}}
{{- if not .image.digest -}}
{{- $tag = $tag | default .root.Chart.AppVersion -}}
{{- end -}}
{{- $repository -}}{{- with $tag }}:{{ . }}{{ end -}}{{- with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "howdah.operatorImage" -}}
{{- include "howdah.image" (dict "root" . "image" .Values.image) -}}
{{- end -}}

{{- define "howdah.serverImage" -}}
{{- include "howdah.image" (dict "root" . "image" .Values.serverImage) -}}
{{- end -}}

{{- /* howdah.pullSecrets is the field of a pod or a ServiceAccount. */ -}}
{{- define "howdah.pullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{- /* howdah.rules takes (dict "root" $ "file" NAME) and gives the rules of that generated role of files/rbac. */ -}}
{{- define "howdah.rules" -}}
{{- (.root.Files.Get (printf "files/rbac/%s" .file) | fromYaml).rules | toYaml -}}
{{- end -}}
