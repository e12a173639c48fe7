/**
 * Guesses secrets at POST /tokens, so many a second: `node guesses.ts GUESSES`, GUESSES being JSON. With `spread` each
 * guess comes from another address (X-Forwarded-For) and is about another agent, so that no throttle but the queue of
 * the gateway holds it up.
 */
import { Agent, request } from 'node:http'

export interface Guesses {
  readonly url: string
  readonly agentId: string
  readonly perSecond: number
  readonly seconds: number
  readonly spread: boolean
}

const { url, agentId, perSecond, seconds, spread } = JSON.parse(process.argv[2] ?? '') as Guesses
const statuses: Record<string, number> = {}
const agent = new Agent({ keepAlive: true, maxSockets: 64 })

function guess(turn: number): void {
  const about = spread ? `00000000-0000-4000-8000-${String(turn).padStart(12, '0')}` : agentId
  const from = spread ? { 'X-Forwarded-For': `198.18.${(turn >> 8) & 255}.${turn & 255}` } : {}
  const call = request(`${url}/tokens`, {
    method: 'POST',
    agent,
    headers: { 'Content-Type': 'application/json', ...from },
  })
  call.on('response', answer => {
    const status = String(answer.statusCode)
    statuses[status] = (statuses[status] ?? 0) + 1
    answer.resume()
  })
  call.on('error', () => {
    statuses['failed'] = (statuses['failed'] ?? 0) + 1
  })
  call.end(JSON.stringify({ agentId: about, clientSecret: `guess ${turn}` }))
}

const start = performance.now()
let sent = 0
const timer = setInterval(() => {
  const elapsed = performance.now() - start
  for (const due = Math.floor((Math.min(elapsed, seconds * 1e3) * perSecond) / 1e3); sent < due; sent++) guess(sent)
  if (elapsed < seconds * 1e3) return
  clearInterval(timer)
  process.stdout.write(`${JSON.stringify(statuses)}\n`, () => process.exit())
}, 1)
