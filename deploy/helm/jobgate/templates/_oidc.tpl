{{/* The variables of API processes for the sign-in at an OIDC issuer. */}}
{{- define "jobgate.oidcVariables" -}}
{{- if .Values.oidc.issuer }}
- name: JOBGATE_OIDC_ISSUER
  value: {{ .Values.oidc.issuer | quote }}
- name: JOBGATE_OIDC_CLIENT_ID
  value: {{ .Values.oidc.clientId | quote }}
- name: JOBGATE_OIDC_GRANTS
  value: {{ join ";" .Values.oidc.grants | quote }}
{{- with .Values.oidc.audience }}
- name: JOBGATE_OIDC_AUDIENCE
  value: {{ . | quote }}
{{- end }}
{{- with .Values.oidc.scopes }}
- name: JOBGATE_OIDC_SCOPES
  value: {{ join " " . | quote }}
{{- end }}
{{- with .Values.oidc.nameClaims }}
- name: JOBGATE_OIDC_NAME_CLAIM
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.oidc.groupsClaim }}
- name: JOBGATE_OIDC_GROUPS_CLAIM
  value: {{ . | quote }}
{{- end }}
{{- if .Values.oidc.caConfigMap }}
- name: SSL_CERT_FILE
  value: /etc/jobgate/oidc/{{ .Values.oidc.caKey }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether the pods of a component mount the authorities of the issuer. */}}
{{- define "jobgate.mountsOidcAuthorities" -}}
{{- if and (eq .component "api") .root.Values.oidc.issuer .root.Values.oidc.caConfigMap }}yes{{ end -}}
{{- end -}}

{{/* The rule that permits connections to the issuer. A policy cannot name a host. */}}
{{- define "jobgate.oidcEgress" -}}
- ports:
    - port: {{ (urlParse .Values.oidc.issuer).host | regexFind ":[0-9]+$" | trimPrefix ":" | default "443" }}
      protocol: TCP
{{- with .Values.oidc.egressTo }}
  to:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}
