import { readFileSync } from 'node:fs'
import t from 'tap'
import { bounds, families, histograms } from '../../src/telemetry/layout.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { scrape } from '../fixtures/scrape.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const page = read('docs/metrics.md')

/** The words in backticks of one column of the table with this heading. */
function quoted(text: string, heading: string, column = 0): string[] {
  const [, table = ''] = new RegExp(`\\| ${heading} \\|.*\\n\\|---.*\\n((?:\\|.*\\n)+)`).exec(text) ?? []
  const cells = table.split('\n').map(row => row.split(/ \|(?: |$)|^\| /)[column + 1] ?? '')
  return cells.flatMap(cell => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word))
}

t.test('docs/metrics.md lists every metric with its label', async t => {
  const { manage } = await startGateway(t, {
    config: {
      Budgets: [{ Name: 'one', Unit: 'Calls', Limit: 1 }],
      Secrets: [{ Name: 'key', FromEnv: 'KEY' }],
      Credentials: [{ Name: 'shop', Secret: 'key' }],
    },
    env: { KEY: 'value' },
    alone: 'there is a metric for each of its budgets and credentials',
  })
  const withTls = 'agent_gateway_certificate_expiry_timestamp_seconds'
  const withPostgres = ['agent_gateway_store_connections', 'agent_gateway_store_waiting']
  const shown = [...scrape((await manage('GET', '/metrics')).text).types.keys(), withTls, ...withPostgres]
  const named = quoted(page, 'Metric').map(name => name.replace(/^…/, 'agent_gateway_'))
  const labels = new Map(
    [...families, ...histograms].map(({ name, label }) => [name, label === undefined ? '' : `{${label}}`]),
  )
  labels.set('agent_gateway_budget_used_ratio', '{budget}')
  labels.set('agent_gateway_credential_state', '{credential,state}')
  labels.set('agent_gateway_store_connections', '{state}')
  // `process_…` stands for all names that begin so; Prometheus defines them.
  const prefixes = named.filter(name => name.endsWith('…')).map(name => name.slice(0, -1))
  const own = shown.filter(name => !prefixes.some(prefix => name.startsWith(prefix)))
  t.strictSame(
    named.filter(name => !name.endsWith('…')).sort(),
    own.map(name => name + (labels.get(name) ?? '')).sort(),
  )
  const unused = prefixes.filter(prefix => !shown.some(name => name.startsWith(prefix)))
  t.strictSame(unused, [])
})

t.test('SECURITY.md lists every limit that is counted', async t => {
  t.strictSame(quoted(read('SECURITY.md'), 'Of', 3).sort(), [...bounds.cells.keys()].sort())
})

t.test('the fields of a line of the access log are those that docs/metrics.md names', async t => {
  const members = /(?:plain|text|number|list)\('(\w+)'|"(\w+)":/g
  const written = [...read('src/pipeline/ends/access-line.ts').matchAll(members)].map(
    ([, name, other]) => name ?? other,
  )
  t.strictSame(quoted(page, 'Field of `exchange`').sort(), [...new Set(written)].sort())
})
