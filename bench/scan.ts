/**
 * What deciding on a body costs, by what the body is: the processor's milliseconds for all of it, and for the longest
 * turn of the event loop. Medians; no gate, since a busy machine doubles them.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BodyDecision, decideHead } from '../src/policy/evaluation/decide.ts'
import { defaultRisk } from '../src/policy/risk/risk-signals.ts'
import { busyPieces } from '../test/fixtures/hostile-texts.ts'
import { described, rulebookOf } from '../test/fixtures/rulebook.ts'

const megabyte = 1_048_576
const fill = (piece: string, size = megabyte) => piece.repeat(Math.ceil(size / piece.length)).slice(0, size)
const source = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8').replaceAll('@', ' ')
const chat = (text: string, size: number) => JSON.stringify({ messages: [{ role: 'user', content: fill(text, size) }] })
function chatWithImage(size: number): string {
  const url = `data:image/png;base64,${randomBytes(size).toString('base64')}`
  return JSON.stringify({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })
}

const json = 'application/json'
const bodies: readonly (readonly [name: string, type: string, body: string])[] = [
  ['chat, prose, 16 KiB', json, chat(source('SECURITY.md'), 16_000)],
  ['chat, prose, 1 MiB', json, chat(source('SECURITY.md'), megabyte - 60_000)],
  ['chat, code, 1 MiB', json, chat(source('src/policy/evaluation/decide.ts'), megabyte - 60_000)],
  ['chat, image of 5 MiB in base64', json, chatWithImage(5 * megabyte)],
  ['JSON, objects', json, `[${'{},'.repeat(99_900)}{}]`],
  ['JSON, objects, too many', json, `[${'{},'.repeat(349_000)}{}]`],
  ['JSON, exponents', json, `[${'1e1,'.repeat(99_900)}1]`],
  ['JSON, vector', json, `{"input":[${'0.1234567,'.repeat(95_000)}1]}`],
  ['JSON, names', json, JSON.stringify(Array.from({ length: 49_000 }, (_, at) => ({ [`k${at}`]: 1 })))],
  ['JSON, short texts', json, JSON.stringify(Array.from({ length: 90_000 }, (_, at) => `k${at}`))],
  [
    'JSON, names, too many',
    json,
    JSON.stringify(Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`k${at}`, 1]))),
  ],
  ['form', 'application/x-www-form-urlencoded', 'a=b&'.repeat(99_900)],
  ...busyPieces.map(piece => [`text, ${JSON.stringify(piece).slice(0, 40)}`, 'text/plain', fill(piece)] as const),
]

/** Reads everything: both groups of detectors, a member of the body, and the whole of the risk. */
const rulebook = rulebookOf(
  {
    name: 'bench',
    default: 'Hitl',
    rules: [
      { name: 'member', effect: 'Deny', conditions: [{ field: 'input.body.a', operator: 'eq', value: '1' }] },
      {
        name: 'any',
        effect: 'Hitl',
        conditions: [{ field: 'input.bodyText', operator: 'detects', value: 'secret,pii' }],
      },
    ],
  },
  { risk: defaultRisk },
)

const processorMilliseconds = () => process.cpuUsage().user / 1_000

function decideOnce(type: string, body: string): { readonly all: number; readonly longest: number } {
  const request = described({
    request: { method: 'POST', url: 'https://a.example/', headers: { 'content-type': type }, body },
  })
  const need = decideHead(rulebook, request.head)
  if (!('need' in need)) throw new Error('the rules read no body')
  const decision = new BodyDecision(rulebook, request.head, need, request.body)
  let all = 0
  let longest = 0
  for (let isDecided = false; !isDecided; ) {
    const start = processorMilliseconds()
    isDecided = decision.takeTurn() !== undefined
    const took = processorMilliseconds() - start
    all += took
    longest = Math.max(longest, took)
  }
  return { all, longest }
}

const rounds = 7
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number

for (const [name, type, body] of bodies) {
  const results = Array.from({ length: rounds }, () => decideOnce(type, body))
  const all = median(results.map(result => result.all)).toFixed(2)
  const longest = median(results.map(result => result.longest)).toFixed(2)
  console.log(`${name.padEnd(48)} ${all.padStart(8)} ms, longest turn ${longest.padStart(6)} ms`)
}
