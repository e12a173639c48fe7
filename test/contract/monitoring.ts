import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { families, histograms } from '../../src/telemetry/layout.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
}
interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[]
}

const alerts: readonly Alert[] = parse(read('deploy/prometheus/alerts.yaml')).groups[0].rules
const panels: readonly Panel[] = JSON.parse(read('deploy/grafana/agent-gateway.json')).panels
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
]

/** Names that docs/metrics.md lists: test/contract/metrics.ts holds it against the page of the gateway. */
const documented = [...read('docs/metrics.md').matchAll(/`(?:agent_gateway_|…)([a-z_]+)(?:\{\w+\})?`/g)].map(
  ([, name]) => `agent_gateway_${name}`,
)
const ofProcess = ['cpu_seconds_total', 'resident_memory_bytes', 'open_fds', 'max_fds'].map(name => `process_${name}`)
const single = new Set([...families.map(({ name }) => name), ...documented, ...ofProcess, 'up'])
const ofHistograms = new Set(
  histograms.flatMap(({ name }) => ['bucket', 'sum', 'count'].map(suffix => `${name}_${suffix}`)),
)

/** Names of metrics in an expression, with what stands before each. */
const used = (expr: string) =>
  [...expr.matchAll(/(\w+\()?\b((?:agent_gateway|process|nodejs)_\w+|up)\b/g)].map(([, call = '', name = '']) => ({
    call,
    name,
  }))

t.test('alerts and panels read metrics that the gateway has', async t => {
  for (const [where, expr] of expressions) {
    const names = used(expr)
    t.ok(names.length > 0, where)
    for (const { name } of names) t.ok(single.has(name) || ofHistograms.has(name), `${where}: ${name}`)
  }
})

t.test('counters and buckets stand inside rate or increase, and nothing else does', async t => {
  const counts = (name: string) => name.endsWith('_total') || ofHistograms.has(name)
  for (const [where, expr] of expressions) {
    for (const { call, name } of used(expr))
      t.equal(/^(?:rate|increase)\($/.test(call), counts(name), `${where}: ${name}`)
  }
})

t.test('labels of a metric are those that it has', async t => {
  const labels = new Map(
    [...families, ...histograms].map(({ name, label, cells }) => [name, { label, values: [...cells.keys()] }]),
  )
  for (const [where, expr] of expressions) {
    for (const [, name = '', body = ''] of expr.matchAll(/\b(agent_gateway_\w+?)(?:_bucket)?\{([^}]*)\}/g)) {
      for (const [, label = '', values = ''] of body.matchAll(/(\w+)=~?"([^"]*)"/g)) {
        if (['job', 'instance', 'le'].includes(label)) continue
        const known = labels.get(name)
        t.equal(label, known?.label, `${where}: ${name}`)
        for (const value of values.split('|')) t.ok(known?.values.includes(value), `${where}: ${name} ${value}`)
      }
    }
  }
})

t.test('each alert has a severity, a test in which it fires, and one in which it does not', async t => {
  const tests: readonly {
    readonly name: string
    readonly alert_rule_test: readonly { readonly exp_alerts: unknown[] }[]
  }[] = parse(read('deploy/prometheus/alerts-test.yaml')).tests
  for (const { alert, labels } of alerts) {
    t.match(labels.severity, /^(?:critical|warning)$/)
    const counts = tests
      .filter(({ name }) => name.startsWith(`${alert} `))
      .map(({ alert_rule_test: [first] }) => first?.exp_alerts.length)
    t.strictSame(counts, [1, 0], alert)
  }
})

t.test('panels have ids, titles and units of their own, and do not overlap', async t => {
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const shown = panels.filter(({ type }) => type !== 'row')
  t.equal(new Set(shown.map(({ title }) => title)).size, shown.length)
  const taken = new Set<string>()
  for (const { title, gridPos, fieldConfig, targets = [] } of shown) {
    t.ok(fieldConfig?.defaults.unit, title)
    t.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        t.notOk(taken.has(`${x} ${y}`) || x >= 24, `${title} at ${x}, ${y}`)
        taken.add(`${x} ${y}`)
      }
    }
  }
})
