/** Threat T62 of SECURITY.md, by the table of docs/requests.md: fields of an answer that lead the client somewhere, in each place where answers arrive. */
import { readFileSync } from 'node:fs'
import { get, type IncomingHttpHeaders } from 'node:http'
import t, { type Test } from 'tap'
import { startOrigin } from '../fixtures/origin.ts'
import { startReview } from '../fixtures/review.ts'

const text = readFileSync(new URL('../../docs/requests.md', import.meta.url), 'utf8')
const table = /\| Field of the upstream \|.*\n\|[-|]+\|\n((?:\|.*\n)+)/.exec(text)?.[1] ?? ''
const places = ['proxy', 'host', 'approval', 'interim'] as const
type Place = (typeof places)[number]

/** Each field with what becomes of it, by place. */
const rows = table.split('\n').flatMap(line => {
  const [names = '', ...cells] = line.split('|').slice(1, -1)
  return Array.from(names.matchAll(/`([^`]+)`/g), ([, name = '']) => ({ name, cells: cells.map(cell => cell.trim()) }))
})

const other = 'http://other.example/x'
const values: Readonly<Record<string, string>> = {
  link: `<${other}>; rel=next`,
  refresh: `5; url=${other}`,
  'set-cookie': 'a=1; Secure; Domain=example.com',
  'www-authenticate': 'Bearer realm="x"',
}
const given = (name: string) =>
  values[name.toLowerCase()] ?? (name.endsWith('ocation') ? other : 'as the upstream sent it')

/** The upstream answers with every field of the table, in 103 too. */
const sent = rows.flatMap(({ name }) => [name, given(name)])
const origin = await startOrigin(t, (_req, res) => {
  const interim = sent.map((_, at) => (at % 2 === 0 ? `${sent[at]}: ${sent[at + 1]}\r\n` : '')).join('')
  res.socket?.write(`HTTP/1.1 103 Early Hints\r\n${interim}\r\n`)
  res.writeHead(200, sent).end()
})
const review = await startReview(t, {
  origin,
  config: {
    Hosts: [{ Host: 'one.gateway.test', Upstream: origin.url }],
    System: { PublicUrl: 'http://gateway.test' },
  },
})
const bot = await review.agent({ policyName: 'allow-all' })

interface Answered {
  readonly final: IncomingHttpHeaders
  readonly interim: IncomingHttpHeaders
}

/** Header fields of the answer and of the interim answer to a GET of the gateway. */
function call(path: string, host: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    let interim: IncomingHttpHeaders = {}
    const headers = { Host: host, 'Gateway-Authorization': `Bearer ${bot.token}` }
    const req = get({ port: review.port, host: '127.0.0.1', path, headers }, res => {
      res.resume().on('end', () => resolve({ final: res.headers, interim }))
    })
    req.on('information', ({ headers }) => {
      interim = headers
    })
    req.on('error', reject)
  })
}

const held = await review.hold('/x')
const approved = await review.approve(held)
const found: Readonly<Record<Place, IncomingHttpHeaders>> = {
  proxy: (await call(`/proxy/${origin.url}/dir/x`, 'gateway.test')).final,
  host: (await call('/dir/x', 'one.gateway.test')).final,
  approval: Object.fromEntries(approved.headers),
  interim: (await call(`/proxy/${origin.url}/dir/x`, 'gateway.test')).interim,
}

const linked = { proxy: '/proxy/', host: 'http://gateway.test/proxy/', approval: '', interim: '/proxy/' }

t.test('the table names every field that the code treats', async t => {
  t.ok(rows.length > 15, `rows: ${rows.length}`)
  t.equal(new Set(rows.map(({ name }) => name.toLowerCase())).size, rows.length)
  const names = readFileSync(new URL('../../src/http/names.ts', import.meta.url), 'utf8')
  const inCode = [...names.matchAll(/^ {2}\['([a-z-]+)', '[a-z]+'\],$/gm)].map(([, name]) => name)
  t.strictSame(rows.map(({ name }) => name.toLowerCase()).sort(), inCode.sort())
})

for (const { name, cells } of rows) {
  t.test(`${name} becomes what the table says`, async t => {
    t.equal(cells.length, places.length)
    for (const [at, place] of places.entries()) check(t, name, { place, cell: cells[at] ?? '' })
  })
}

function check(t: Test, name: string, { place, cell }: { place: Place; cell: string }) {
  const lower = name.toLowerCase()
  const value = [found[place][lower]].flat()[0]
  const original = [found[place][`gateway-upstream-${lower}`]].flat()[0]
  const what = `${place}: ${cell}`
  switch (cell) {
    case 'link':
      t.equal(value, given(name).replace(other, linked[place] + other), what)
      t.equal(original, place === 'interim' ? undefined : given(name), what)
      break
    case 'path':
      t.equal(value, `a=1; Secure; Path=/proxy/${origin.url}/dir`, what)
      break
    case 'domain':
      t.equal(value, 'a=1; Secure', what)
      break
    case 'renamed':
      t.strictSame([value, original], [undefined, given(name)], what)
      break
    case 'dropped':
      t.strictSame([value, original], [undefined, undefined], what)
      break
    default:
      t.match(cell, /^(?:unchanged|token)$/)
      t.strictSame([value, original], [given(name), undefined], what)
  }
}
