{{/* The name of the resources: that of the release. */}}
{{- define "penstock.fullname" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.selectorLabels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "penstock.labels" -}}
{{ include "penstock.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The name of the port for TPP systems. */}}
{{- define "penstock.portName" -}}
{{- if .Values.config.listen.tls }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* The scheme of the admin listener, as a member after others. The kubelet does not verify the certificate. */}}
{{- define "penstock.adminScheme" -}}
{{- if .Values.config.admin.tls }}, scheme: HTTPS{{ end -}}
{{- end -}}

{{/* The configuration file: the values, and what follows from other values. */}}
{{- define "penstock.config" -}}
{{- $derived := dict "shaping" (dict "expectedInstances" (int .Values.autoscaling.maxReplicas)) -}}
{{- $config := mergeOverwrite $derived (deepCopy .Values.config) -}}
{{- $service := printf "%s-operators" (include "penstock.fullname" .) -}}
{{- $inNamespace := printf "%s.%s" $service .Release.Namespace -}}
{{- $names := list $service $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) -}}
{{- $_ := set $config.admin "hosts" (concat ($config.admin.hosts | default list) $names | uniq) -}}
{{- $config | toYaml -}}
{{- end -}}
