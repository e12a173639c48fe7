import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { parsePolicy } from '../../src/policy/language/parse.ts'
import { commandsOf } from '../fixtures/debian.ts'
import { type KubernetesObject, lintChart, problemsOf, render, template } from '../fixtures/kubernetes.ts'

const postgres = ['storage.provider=PostgreSQL', 'existingSecret=gateway', 'replicas=3']
const everything = [
  ...postgres,
  ...['forwardProxy.enabled=true', 'serviceMonitor.enabled=true', 'prometheusRule.enabled=true'],
  ...['networkPolicy.people[0].podSelector.matchLabels.app=ingress', 'podLabels.team=agents', 'podAnnotations.a=b'],
  ...['storage.storageClass=fast', 'service.clusterIP=10.0.0.7', 'priorityClassName=high', 'nodeSelector.disk=ssd'],
  ...['tolerations[0].key=agents', 'imagePullSecrets[0].name=pull', 'serviceMonitor.labels.release=prometheus'],
]
const of = (objects: readonly KubernetesObject[], kind: string): KubernetesObject => {
  const found = objects.find(object => object.kind === kind)
  if (found === undefined) throw new Error(`there is no ${kind}`)
  return found
}
const podOf = (objects: readonly KubernetesObject[]) =>
  (objects.find(({ kind }) => kind === 'StatefulSet') ?? of(objects, 'Deployment')).spec.template.spec

t.test('Helm finds nothing to complain about', async t => t.match(lintChart(), /0 chart\(s\) failed/))

t.test('every object is one that Kubernetes accepts, and a wrong one is found', async t => {
  t.equal(problemsOf(render()), '')
  t.equal(problemsOf(render(...everything)), '')
  const wrong = structuredClone(of(render(), 'StatefulSet')) as { spec: { template: { spec: object } } }
  Object.assign(wrong.spec.template.spec, { runAsUsr: 1 })
  t.match(problemsOf([wrong]), 'runAsUsr')
})

t.test('SQLite is one gateway with a volume; more of them, and values that nobody knows, are refused', async t => {
  const objects = render()
  t.match(of(objects, 'StatefulSet').spec, { replicas: 1, volumeClaimTemplates: [{ metadata: { name: 'data' } }] })
  t.throws(() => render('replicas=2'), /replicas/)
  t.throws(() => render('storage.provider=PostgreSQL'), /existingSecret/)
  t.throws(() => render('image.tagg=1'), /tagg/)
})

t.test('PostgreSQL is a Deployment that never has fewer gateways than asked for', async t => {
  const objects = render(...everything)
  t.match(of(objects, 'Deployment').spec, { replicas: 3, strategy: { rollingUpdate: { maxUnavailable: 0 } } })
  t.equal(of(objects, 'PodDisruptionBudget').spec.maxUnavailable, 1)
  t.equal(of(objects, 'PrometheusRule').spec.groups[0].name, 'agent-gateway')
  t.strictSame(of(objects, 'ServiceMonitor').spec.endpoints, [{ port: 'people', path: '/metrics', interval: '30s' }])
  t.notOk(objects.some(({ kind }) => kind === 'StatefulSet'))
})

t.test('nothing runs as root or can write to its own files, and no token of Kubernetes is there', async t => {
  for (const pod of [podOf(render()), podOf(render(...everything))]) {
    t.equal(pod.automountServiceAccountToken, false)
    t.match(pod.securityContext, { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } })
    t.match(pod.containers[0].securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  }
})

t.test('pods are restarted for their own faults, not for those of the database', async t => {
  const [{ livenessProbe, readinessProbe }] = podOf(render()).containers
  t.equal(livenessProbe.httpGet.path, '/health/live')
  t.equal(readinessProbe.httpGet.path, '/health/proxy')
})

t.test('agents reach the ports for agents and nothing else, not DNS either', async t => {
  const policies = render(...everything).filter(({ kind }) => kind === 'NetworkPolicy')
  const agents = policies.find(({ metadata }) => metadata.name.endsWith('-agents'))?.spec
  t.strictSame(agents.podSelector.matchLabels, { 'agent-gateway/agent': 'true' })
  t.strictSame(agents.policyTypes, ['Egress'])
  t.equal(agents.egress.length, 1)
  t.strictSame(agents.egress[0].ports, [{ port: 7080 }, { port: 7081 }])
  const gateway = policies.find(({ metadata }) => !metadata.name.endsWith('-agents'))?.spec
  const people = gateway.ingress.filter(({ ports }: { ports: { port: number }[] }) => ports[0]?.port === 7079)
  t.strictSame(people, [{ from: [{ podSelector: { matchLabels: { app: 'ingress' } } }], ports: [{ port: 7079 }] }])
})

t.test('the gateway accepts the settings and the policies that the chart writes', async t => {
  const objects = render(...everything)
  const { data = {} } = of(objects, 'ConfigMap')
  const loaded = loadConfig({ file: { path: 'gateway.yaml', text: data['gateway.yaml'] ?? '' }, env: {} })
  t.notOk('problems' in loaded)
  t.ok('policy' in parsePolicy(parse(data['policy-default.yaml'] ?? '')))
  const known = new Set([...settingsOf(schema)].map(([path]) => path.join('__').toUpperCase()))
  const names = podOf(objects).containers[0].env.map(({ name }: { name: string }) => name)
  t.strictSame(
    names.filter((name: string) => !known.has(name)),
    [],
  )
})

t.test('the commands of the page render', async t => {
  const commands = commandsOf('kubernetes.md', 'chart').replaceAll('\\\n', ' ').trim().split('\n')
  for (const command of commands) {
    const [values = ''] = /--set .*/.exec(command) ?? []
    t.equal(problemsOf(template(values.trim().split(/ +/))), '', command)
  }
  t.equal(commands.length, 2)
})

t.test('what the page makes with kubectl before is what the chart reads, and what it forwards is there', async t => {
  // There is no cluster: kubectl says what it would send to one.
  const dry = 'kubectl() { command kubectl "$@" --dry-run=client --output json; }'
  const said = execFileSync('bash', ['-euc', `${dry}\n${commandsOf('kubernetes.md', 'kubectl')}`], { encoding: 'utf8' })
  const [namespace, secret] = said.split(/^(?=\{)/m).map(text => JSON.parse(text))
  t.equal(namespace.metadata.name, 'agents')
  t.match(secret.metadata, { name: 'gateway', namespace: 'agents' })
  const known = new Set([...settingsOf(schema)].map(([path]) => path.join('__').toUpperCase()))
  const names = Object.keys(secret.data)
  t.ok(names.length > 0 && names.every(name => known.has(name)), names.join())
  const objects = template(['--set', 'existingSecret=gateway'], 'gateway')
  t.strictSame(podOf(objects).containers[0].envFrom, [{ secretRef: { name: 'gateway' } }])
  const [, service, port] = /service\/(\S+) (\d+)/.exec(commandsOf('kubernetes.md', 'kubectl forward')) ?? []
  const forwarded = objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === service)
  t.match(forwarded?.spec.ports, [{ port: Number(port) }])
})

t.test('the sidecar is a pod that Kubernetes accepts', async t => {
  const file = fileURLToPath(new URL('../../deploy/kubernetes/sidecar.yaml', import.meta.url))
  const objects = readFileSync(file, 'utf8')
    .split(/^---$/m)
    .map(text => parse(text))
  t.equal(problemsOf(objects), '')
})
