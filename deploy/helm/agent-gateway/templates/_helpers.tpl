{{- define "agent-gateway.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end -}}

{{- define "agent-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agent-gateway.labels" -}}
{{ include "agent-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "agent-gateway.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{/* The pod, in which the StatefulSet and the Deployment do not differ but for the volume of the data. */}}
{{- define "agent-gateway.pod" -}}
metadata:
  labels:
    {{- include "agent-gateway.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Other settings or policies start new pods.
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  # The gateway never calls Kubernetes.
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Longer than StopDelaySeconds and DrainSeconds together.
  terminationGracePeriodSeconds: 45
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: gateway
      image: {{ include "agent-gateway.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      env:
        - name: SYSTEM__SERVER__HTTP__HOST
          value: 0.0.0.0
        - name: SYSTEM__SERVER__MANAGEMENT__ENABLED
          value: 'true'
        - name: SYSTEM__SERVER__MANAGEMENT__HOST
          value: 0.0.0.0
        # So that Kubernetes sends no more connections before the gateway stops.
        - name: SYSTEM__SERVER__STOPDELAYSECONDS
          value: '5'
        - name: STORAGE__PROVIDER
          value: {{ .Values.storage.provider }}
        - name: FLEET__NAME
          valueFrom: { fieldRef: { fieldPath: metadata.name } }
        {{- if .Values.forwardProxy.enabled }}
        - name: FORWARDPROXY__ENABLED
          value: 'true'
        - name: FORWARDPROXY__HOST
          value: 0.0.0.0
        {{- end }}
        {{- if .Values.serviceMonitor.enabled }}
        - name: TELEMETRY__METRICS__PUBLIC
          value: 'true'
        {{- end }}
        # Agents must not reach the gateway by way of the gateway.
        - name: EGRESS__SELFURLS
          value: http://{{ include "agent-gateway.name" . }}.{{ .Release.Namespace }}.svc:7080,http://{{ include "agent-gateway.name" . }}-people.{{ .Release.Namespace }}.svc:7079
      {{- with .Values.existingSecret }}
      envFrom:
        - secretRef: { name: {{ . | quote }} }
      {{- end }}
      ports:
        - { name: agents, containerPort: 7080 }
        - { name: people, containerPort: 7079 }
        {{- if .Values.forwardProxy.enabled }}
        - { name: forward, containerPort: 7081 }
        {{- end }}
      startupProbe:
        httpGet: { path: /health/live, port: agents }
        periodSeconds: 2
        failureThreshold: 60
      # Not /health: it is 503 while the database is away, and a restart would not bring that back.
      livenessProbe:
        httpGet: { path: /health/live, port: agents }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: { path: /health/proxy, port: agents }
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 2
      resources: {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - { name: data, mountPath: /var/lib/agent-gateway }
        - { name: config, mountPath: /etc/agent-gateway, readOnly: true }
  volumes:
    - name: config
      configMap:
        name: {{ include "agent-gateway.name" . }}
        items:
          - { key: gateway.yaml, path: gateway.yaml }
          {{- range $name, $_ := .Values.policies }}
          - { key: policy-{{ $name }}.yaml, path: policies/{{ $name }}.yaml }
          {{- end }}
    {{- if eq .Values.storage.provider "PostgreSQL" }}
    - name: data
      emptyDir: {}
    {{- end }}
{{- end -}}
