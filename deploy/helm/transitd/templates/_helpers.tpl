{{/* Name of the StatefulSet, of its pods and of the Service of any node. */}}
{{- define "transitd.name" -}}
{{- if eq .Release.Name "transitd" }}transitd{{ else }}{{ printf "%s-transitd" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "transitd.selector" -}}
app.kubernetes.io/name: transitd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "transitd.labels" -}}
{{ include "transitd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Domain of the headless Service, in which the pods are hosts. */}}
{{- define "transitd.domain" -}}
{{ include "transitd.name" . }}-headless.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "transitd.scheme" -}}
{{ eq .Values.tls.mode "disabled" | ternary "http" "https" }}
{{- end }}

{{- define "transitd.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}{{ if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The configuration of every node; the environment of a pod adds its name and its addresses. */}}
{{- define "transitd.config" -}}
{{- $listener := dict "address" "0.0.0.0:8200" -}}
{{- if eq .Values.tls.mode "disabled" -}}
{{- $_ := set $listener "tls_disable" true -}}
{{- else -}}
{{- $_ := set $listener "tls" (dict "cert_file" "/etc/transitd/tls/tls.crt" "key_file" "/etc/transitd/tls/tls.key") -}}
{{- end -}}
{{- $members := list -}}
{{- range $ordinal := until (int .Values.replicas) -}}
{{- $host := printf "%s-%d.%s" (include "transitd.name" $) $ordinal (include "transitd.domain" $) -}}
{{- $members = append $members (printf "%s://%s:8200" (include "transitd.scheme" $) $host) -}}
{{- end -}}
{{- $config := dict "data_dir" "/var/lib/transitd/data" "cluster_listen" "0.0.0.0:8201" -}}
{{- $_ := set $config "listeners" (list $listener) -}}
{{- $_ := set $config "retry_join" $members -}}
{{- $_ := set $config "telemetry" (dict "address" "0.0.0.0:8202") -}}
{{- if ne .Values.tls.mode "disabled" -}}
{{- $_ := set $config "retry_join_ca_file" "/etc/transitd/tls/ca.crt" -}}
{{- end -}}
{{- if eq .Values.seal.type "static" -}}
{{- $_ := set $config "seal" (dict "type" "static" "key_id" .Values.seal.static.keyId "key_file" "/etc/transitd/seal/key") -}}
{{- else -}}
{{- $_ := set $config "seal" (dict "type" "shamir") -}}
{{- end -}}
{{- if eq .Values.audit.type "file" -}}
{{- $_ := set $config "audit" (list (dict "type" "file" "name" "file" "path" "/var/log/transitd/audit.log")) -}}
{{- else if eq .Values.audit.type "stdout" -}}
{{- $_ := set $config "audit" (list (dict "type" "stdout" "name" "stdout")) -}}
{{- end -}}
{{- if .Values.ui -}}
{{- $_ := set $config "ui" true -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml -}}
{{- end }}

{{/* Container settings that every container of the chart has. */}}
{{- define "transitd.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Refuses combinations of values that the schema accepts one by one. */}}
{{- define "transitd.checkValues" -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (add (int .Values.preStopSeconds) 25) -}}
{{- fail "terminationGracePeriodSeconds must be at least preStopSeconds + 25: a node first transfers leadership and ends its requests" -}}
{{- end -}}
{{- if gt (int .Values.podDisruptionBudget.maxUnavailable) (div (sub (int .Values.replicas) 1) 2) -}}
{{- if and .Values.podDisruptionBudget.enabled (gt (int .Values.replicas) 1) -}}
{{- fail "podDisruptionBudget.maxUnavailable must leave a majority of the replicas" -}}
{{- end -}}
{{- end -}}
{{- end }}
