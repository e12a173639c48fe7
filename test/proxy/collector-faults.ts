/** Faults of the collector cost spans alone: no request, no line of the log. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { startCollector } from '../fixtures/collector.ts'
import { eventually, startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '300'
process.env['OTEL_BSP_MAX_QUEUE_SIZE'] = '20'
t.teardown(() => {
  delete process.env['OTEL_EXPORTER_OTLP_TIMEOUT']
  delete process.env['OTEL_BSP_MAX_QUEUE_SIZE']
})

type Respond = (req: IncomingMessage, res: ServerResponse) => void
const faults: Readonly<Record<string, Respond>> = {
  'is silent': () => {},
  'answers 429': (_, res) => void res.writeHead(429, { 'Retry-After': '60' }).end(),
  'answers garbage': (_, res) => void res.writeHead(200, { 'Content-Type': 'application/json' }).end('\0<<<'),
  'breaks off': (_, res) => void res.destroy(),
  'begins an answer and stops': (_, res) => void res.writeHead(200, { 'Content-Length': '10' }).write('{'),
  'answers without end': (_, res) => {
    res.on('error', () => {})
    const timer = setInterval(() => res.write('x'.repeat(1_000)), 20)
    res.on('close', () => clearInterval(timer))
  },
}
let respond: Respond = () => {}
const collector = await startCollector(t, (req, res) => respond(req, res))
const origin = await startOrigin(t)
const gateway = await startGateway(t, {
  alone: 'its log and its metrics are looked at',
  config: {
    Telemetry: { Tracing: { Url: collector.url, Ratio: 1 } },
    System: { Server: { Threads: 1 }, RateLimit: { Burst: 1_000 } },
  },
})
const { token } = await gateway.agent()
const spans = async () => {
  const { values } = scrape((await gateway.manage('GET', '/metrics')).text)
  const of = (result: string) => values.get(`agent_gateway_trace_spans_total{result="${result}"}`)!
  return { all: of('exported') + of('failed') + of('dropped'), lost: of('failed') + of('dropped') }
}

let calls = 0
for (const [name, fault] of Object.entries(faults)) {
  t.test(`T85: a collector that ${name} costs no request and no line of the log`, async t => {
    respond = fault
    const reached = collector.calls()
    const paths = Array.from({ length: 12 }, () => `/${++calls}`)
    const answers = await Promise.all(paths.map(path => gateway.proxy(token, origin.url + path)))
    t.ok(answers.every(({ status }) => status === 200))
    for (const answer of answers) await answer.body?.cancel()
    const lines = () => new Set(gateway.log.filter(({ message }) => message === 'exchange').map(({ path }) => path))
    await eventually(lines, seen => paths.every(path => seen.has(path)))
    await eventually(collector.calls, count => count > reached)
  })
}

t.test(
  'each span is exported, failed or dropped, and the log says once a minute that some were not accepted',
  async t => {
    respond = (_, res) => void res.end('{}')
    t.equal(origin.seen.length, calls)
    const counted = await eventually(spans, ({ all }) => all >= 2 * calls)
    t.ok(counted.lost > 0)
    const told = gateway.log.filter(({ message }) => message === 'spans were not accepted by the collector').length
    t.ok(told > 0 && told <= Math.ceil(process.uptime() / 60), `${told} lines`)
    t.equal((await gateway.manage('GET', '/health')).status, 200)
  },
)
