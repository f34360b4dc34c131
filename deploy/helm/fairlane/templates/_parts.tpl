{{- define "fairlane.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "fairlane.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "fairlane.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* What every pod has: no root, nothing to write to but /tmp. */ -}}
{{- define "fairlane.pod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: tmp
    emptyDir: {}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "fairlane.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - name: tmp
    mountPath: /tmp
{{- end }}

{{- define "fairlane.env" -}}
- name: FAIRLANE_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.name }}, key: {{ .Values.secrets.databaseUrl }}}}
{{- with .Values.secrets.secretKey }}
- name: FAIRLANE_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ $.Values.secrets.name }}, key: {{ . }}}}
{{- end }}
{{- with .Values.secrets.metricsToken }}
- name: FAIRLANE_METRICS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ $.Values.secrets.name }}, key: {{ . }}}}
{{- end }}
- name: FAIRLANE_LOG_FORMAT
  value: json
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The port where workers and schedulers tell of themselves. */ -}}
{{- define "fairlane.observed" -}}
- name: FAIRLANE_METRICS_PORT
  value: "9108"
- name: FAIRLANE_METRICS_HOST
  value: 0.0.0.0
{{- end }}

{{- define "fairlane.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ .port }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
