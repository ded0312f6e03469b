{{/* Prefix of the names of all objects. */}}
{{- define "jobgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change, by which objects of this release are selected. Selectors add the component. */}}
{{- define "jobgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The components that serve all the time, as a JSON list. */}}
{{- define "jobgate.components" -}}
{{- $components := list "api" "controller" }}
{{- if .Values.wholeLogs.store }}
{{- $components = append $components "logs" }}
{{- end }}
{{- toJson $components -}}
{{- end -}}

{{- define "jobgate.labels" -}}
{{ include "jobgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "jobgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "jobgate.serverUrl" -}}
{{- $port := int .Values.service.port -}}
{{- $suffix := ternary "" (printf ":%d" $port) (eq $port 80) -}}
{{- .Values.serverUrl | default (printf "http://%s.%s.svc%s" (include "jobgate.fullname" .) .Release.Namespace $suffix) -}}
{{- end -}}
