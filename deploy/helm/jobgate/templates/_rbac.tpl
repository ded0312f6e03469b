{{/* A ClusterRole with the rules of files/rbac/<role>.yaml. */}}
{{- define "jobgate.clusterRole" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "jobgate.fullname" .root }}-{{ .role }}
  labels:
    {{- include "jobgate.labels" .root | nindent 4 }}
rules:
{{ .root.Files.Get (printf "files/rbac/%s.yaml" .role) | trim | indent 2 }}
{{- end -}}

{{/* Who has the rights of a component: its service account, and for the controller also the user of the values. */}}
{{- define "jobgate.subjects" -}}
- kind: ServiceAccount
  name: {{ include "jobgate.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
{{- if and .root.Values.rbac.user (eq .component "controller") }}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .root.Values.rbac.user }}
{{- end }}
{{- end -}}

{{/* Binds the ClusterRole <role> to a component: in each of the `namespaces`, or everywhere if they are empty. */}}
{{- define "jobgate.bindings" -}}
{{- $name := printf "%s-%s" (include "jobgate.fullname" .root) .role -}}
{{- range $namespace := .namespaces | default (list "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (ne $namespace "") }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "jobgate.labels" $.root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  {{- include "jobgate.subjects" $ | nindent 2 }}
{{- end }}
{{- end -}}
