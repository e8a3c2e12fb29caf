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

{{/* What the pods of the gateway and of the migration have in common: members of the pod's spec. */}}
{{- define "penstock.podBasics" -}}
automountServiceAccountToken: false
enableServiceLinks: false # variables such as PENSTOCK_PORT would look like settings
securityContext:
  runAsNonRoot: true
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "penstock.image" -}}
{{- with .Values.image }}
{{- if .digest -}}
image: {{ printf "%s@%s" .repository .digest | quote }}
{{- else -}}
image: {{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) | quote }}
{{- end }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end -}}

{{/* The environment variables; nothing if there are none. */}}
{{- define "penstock.env" -}}
{{- $env := list -}}
{{- with .Values.postgres -}}
{{- if .secretName -}}
{{- $env = append $env (dict "name" "PENSTOCK_STATE_POSTGRES" "valueFrom" (dict "secretKeyRef" (dict "name" .secretName "key" .key))) -}}
{{- end -}}
{{- end -}}
{{- with .Values.redis -}}
{{- if .secretName -}}
{{- $env = append $env (dict "name" "PENSTOCK_STATE_REDIS" "valueFrom" (dict "secretKeyRef" (dict "name" .secretName "key" .key))) -}}
{{- end -}}
{{- end -}}
{{- with concat $env .Values.env -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "penstock.containerSecurity" -}}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
{{- end -}}

{{- define "penstock.volumeMounts" -}}
- { name: config, mountPath: /etc/penstock/penstock.yaml, subPath: penstock.yaml, readOnly: true }
{{- range .Values.secretMounts }}
- { name: {{ .secretName }}, mountPath: {{ .mountPath }}, readOnly: true }
{{- end }}
{{- end -}}

{{/* Of a root context, and of the name of the ConfigMap. 288 is 0440: readable for the group of the process only. */}}
{{- define "penstock.volumes" -}}
- { name: config, configMap: { name: {{ .configMap }} } }
{{- range .root.Values.secretMounts }}
- { name: {{ .secretName }}, secret: { secretName: {{ .secretName }}, defaultMode: 288 } }
{{- end }}
{{- end -}}
