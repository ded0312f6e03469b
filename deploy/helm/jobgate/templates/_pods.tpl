{{/* The security contexts of deploy/, which the Pod Security level `restricted` permits. */}}
{{- define "jobgate.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "jobgate.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The variable with the URL of the database. `secret` is the name of the Secret if the chart creates it. */}}
{{- define "jobgate.databaseVariable" -}}
- name: JOBGATE_DATABASE_URL
  valueFrom:
    secretKeyRef:
{{- if .root.Values.database.url }}
      name: {{ .secret }}
      key: url
{{- else }}
      name: {{ .root.Values.database.existingSecret }}
      key: {{ .root.Values.database.existingSecretKey }}
{{- end }}
{{- end -}}

{{/* The credentials of the log store, as variables of the container: for the processes that read and write it. */}}
{{- define "jobgate.storeCredentials" -}}
{{- with .Values.wholeLogs.credentialsSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end -}}

{{/* The variables of all processes. */}}
{{- define "jobgate.variables" -}}
{{ include "jobgate.databaseVariable" (dict "root" . "secret" (printf "%s-database" (include "jobgate.fullname" .))) }}
- name: JOBGATE_METRICS_PORT
  value: "9090"
- name: JOBGATE_SERVER_URL
  value: {{ include "jobgate.serverUrl" . | quote }}
- name: JOBGATE_SYSTEM_NAMESPACE
  value: {{ .Release.Namespace | quote }}
- name: JOBGATE_SHUTDOWN_TIMEOUT
  value: {{ .Values.shutdown.timeoutSeconds | quote }}
{{- with .Values.namespaces }}
- name: JOBGATE_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.sampleSets.secretNamespaces }}
- name: JOBGATE_SECRET_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.wholeLogs.store }}
- name: JOBGATE_LOG_STORE
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Port, probes, security context and mounts of the container of a component: API, controller or logs. */}}
{{- define "jobgate.serving" -}}
ports:
  - {name: http, containerPort: 8080}
  - {name: metrics, containerPort: 9090}
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 30
  timeoutSeconds: 30
  failureThreshold: 4
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
securityContext:
  {{- include "jobgate.containerSecurityContext" . | nindent 2 }}
{{- $mounts := .root.Values.extraVolumeMounts }}
{{- if include "jobgate.mountsOidcAuthorities" . }}
{{- $mounts = append $mounts (dict "name" "oidc-authorities" "mountPath" "/etc/jobgate/oidc" "readOnly" true) }}
{{- end }}
{{- with $mounts }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Where the pods of a component run. `part` is `api`, `controller`, `wholeLogs` or `migration` of the values. */}}
{{- define "jobgate.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .part.topologyKeys }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "jobgate.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
  {{- end }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- $volumes := .root.Values.extraVolumes }}
{{- if include "jobgate.mountsOidcAuthorities" . }}
{{- $authorities := dict "name" .root.Values.oidc.caConfigMap }}
{{- $volumes = append $volumes (dict "name" "oidc-authorities" "configMap" $authorities) }}
{{- end }}
{{- with $volumes }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Labels and annotations of the pods of a component. Pods read the URL of the database at their start, so every upgrade of a
release that contains it replaces them. There is no digest of the URL: with it, whoever reads pods could test guesses of the password.
*/}}
{{- define "jobgate.podMetadata" -}}
labels:
  {{- include "jobgate.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
{{- if or .part.podAnnotations .root.Values.database.url }}
annotations:
  {{- with .part.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .root.Values.database.url }}
  jobgate.dev/release-revision: {{ .root.Release.Revision | quote }}
  {{- end }}
{{- end }}
{{- end -}}
