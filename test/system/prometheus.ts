import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { newId } from '../../src/telemetry/tracing/sampling.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url))

function promtool(args: readonly string[], input?: string) {
  const { status, stdout, stderr } = spawnSync('promtool', args, {
    encoding: 'utf8',
    input,
    cwd: `${deploy}prometheus`,
  })
  return { status, said: stdout + stderr }
}

t.test('promtool accepts the alerts, and their tests pass', async t => {
  const checked = promtool(['check', 'rules', 'alerts.yaml'])
  t.equal(checked.status, 0, checked.said)
  const tested = promtool(['test', 'rules', 'alerts-test.yaml'])
  t.equal(tested.status, 0, tested.said)
})

t.test('promtool parses each expression of the dashboard', async t => {
  const { panels } = JSON.parse(readFileSync(join(deploy, 'grafana/agent-gateway.json'), 'utf8'))
  const targets: readonly { readonly expr: string }[] = panels.flatMap(({ targets = [] }) => targets)
  const rules = targets.map(({ expr }, index) => ({
    record: `panel:${index}`,
    expr: expr.replaceAll('$__rate_interval', '1m'),
  }))
  const file = join(testdir(t), 'panels.yaml')
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
  const { status, said } = promtool(['check', 'rules', '--lint=none', file])
  t.equal(status, 0, said)
  t.ok(rules.length > 50, `${rules.length} expressions`)
})

t.test('Prometheus scrapes a gateway, and promtool accepts its page', async t => {
  const origin = await startOrigin(t)
  const Tracing = { Url: 'http://127.0.0.1:1/v1/traces', Ratio: 0 }
  const gateway = await startGateway(t, {
    config: { Telemetry: { Metrics: { Public: true, Origins: ['127.0.0.1'] }, Tracing } },
    alone: 'its metrics are looked at',
  })
  const { token } = await gateway.agent()
  const traceId = newId(16)
  const headers = { traceparent: `00-${traceId}-${newId(8)}-01` }
  await (await gateway.proxy(token, `${origin.url}/`, { headers })).text()
  const checked = promtool(['check', 'metrics'], (await gateway.manage('GET', '/metrics', undefined, null)).text)
  t.equal(checked.status, 0, checked.said)

  const directory = testdir(t)
  const job = { job_name: 'agent-gateway', static_configs: [{ targets: [new URL(gateway.url).host] }] }
  const config = {
    global: { scrape_interval: '1s' },
    rule_files: [`${deploy}prometheus/alerts.yaml`],
    scrape_configs: [job],
  }
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify(config))
  const server = spawn(
    'prometheus',
    [
      `--config.file=${directory}/prometheus.yml`,
      `--storage.tsdb.path=${directory}/data`,
      '--web.listen-address=127.0.0.1:0',
      '--enable-feature=exemplar-storage',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = once(server, 'exit')
  let said = ''
  server.stderr.on('data', chunk => {
    said += chunk
  })
  t.teardown(async () => {
    server.kill()
    await ended
  })
  const listening = () => /[Ll]istening on.* address=127\.0\.0\.1:(\d+)/.exec(said)?.[1]
  const port = await eventually(listening, found => found !== undefined)
  // It may not have scraped yet.
  const query = (expr: string) =>
    / => (\S+) @/.exec(promtool(['query', 'instant', `http://127.0.0.1:${port}`, expr]).said)?.[1]
  t.equal(
    await eventually(
      () => query('up{job="agent-gateway"}'),
      value => value === '1',
    ),
    '1',
  )
  const forwarded = await eventually(
    () => query('agent_gateway_requests_total{outcome="forwarded"}'),
    value => value === '1',
  )
  t.equal(forwarded, '1')
  t.equal(query('agent_gateway_upstream_responses_total{origin="127.0.0.1",class="2xx"}'), '1')
  const range = `start=${Date.now() / 1e3 - 600}&end=${Date.now() / 1e3 + 600}`
  const series = 'agent_gateway_request_duration_seconds_bucket'
  const exemplars = async () =>
    (await fetch(`http://127.0.0.1:${port}/api/v1/query_exemplars?query=${series}&${range}`)).text()
  t.match(await eventually(exemplars, text => text.includes(traceId)), `"trace_id":"${traceId}"`)
})
