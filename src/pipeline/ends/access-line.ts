import { redactPath } from '../../base/redact.ts'
import { namesOf } from '../../credentials/placement.ts'
import type { LogFields } from '../../log/log.ts'
import type { MatchedCondition, ShadowOutcome } from '../../policy/evaluation/decision.ts'
import { keyIdOf } from '../../tokens/agent-key.ts'
import type { CallUsage } from '../answers/usage-meter.ts'
import type { Exchange } from '../exchange.ts'
import type { EndListener, EndParts, UnusedTunnel } from './listener.ts'

/** Writes the canonical line: one line describes the whole exchange. */
export const accessListener = (parts: EndParts): EndListener => ({
  name: 'access line',
  ended: (exchange, at) => parts.log.line(lineOf(exchange, at - exchange.startedAt, parts), 'exchange'),
  opened: exchange =>
    parts.log.line(callMembers(exchange, parts) + decidedMembers(exchange, parts), openedWords(exchange)),
  unused: tunnel => parts.log.line(unusedMembers(tunnel), 'tunnel without a request'),
  replayed({ requestId, agentId, hitlId, usage, budget, charged }) {
    const members = `"agentId":"${agentId}"${plain('requestId', requestId)}${plain('hitlId', hitlId)}`
    parts.log.line(
      members + plain('budget', budget) + chargedMember(charged) + usageMembers(usage),
      'usage of an approved request',
    )
  },
})

const unusedMembers = ({ id, agentId, keyId, clientIp, origin, cause, ms }: UnusedTunnel): string =>
  `"requestId":"${id}","agentId":"${agentId}"${plain('keyId', keyId)}${plain('clientIp', clientIp)}` +
  `,"method":"CONNECT","road":"intercepted","origin":"${origin}","status":200` +
  text('cause', cause) +
  number('ms', rounded(ms))

const openedWords = (exchange: Exchange): string => (exchange.isTunnel ? 'tunnel opened' : 'websocket opened')

function lineOf(exchange: Exchange, ms: number, parts: EndParts): string {
  return (
    callMembers(exchange, parts) +
    failureMembers(exchange) +
    decidedMembers(exchange, parts) +
    traceMembers(exchange) +
    plain('ending', exchange.ending ?? 'aborted') +
    number('ms', rounded(ms)) +
    number('bytesIn', exchange.body?.length ?? exchange.bytesUp) +
    number('bytesOut', exchange.bytesDown) +
    plain('credential', namesOf(exchange.credentials)) +
    plain('budget', exchange.budget) +
    chargedMember(exchange.charged) +
    (exchange.meter === undefined ? text('model', exchange.unpriced) : usageMembers(exchange.meter.usage))
  )
}

const chargedMember = (money: number | undefined): string =>
  money === undefined ? '' : number('charged', Math.round(money * 1e9) / 1e9)

function usageMembers(usage: CallUsage | undefined): string {
  if (usage === undefined) return ''
  const { how, tokens, model, cost } = usage
  const known = plain('usage', how) + text('model', model)
  if (tokens === undefined) return known
  const { input, output, cacheRead, cacheWrite, cacheWriteLong } = tokens
  const whole = input + cacheRead + cacheWrite + cacheWriteLong
  const counts = number('tokensIn', whole) + number('tokensCached', cacheRead) + number('tokensOut', output)
  return known + counts + (cost === undefined ? '' : number('cost', cost))
}

/** Who called what. Queries are left out: they carry secrets too often. */
function callMembers(exchange: Exchange, { clientIpOf }: EndParts): string {
  const { requestId, agent, req, target } = exchange
  return (
    `"requestId":"${requestId}"${plain('agentId', agent?.id)}${plain('keyId', keyIdOf(exchange.claims))}` +
    plain('clientIp', clientIpOf(exchange.socket, req.rawHeaders)) +
    plain('method', req.method) +
    plain('road', exchange.addressing.road) +
    plain('tunnel', exchange.addressing.tunnel?.id) +
    plain('origin', target?.origin.key) +
    (target === undefined || exchange.isTunnel ? '' : text('path', redactPath(target.path))) +
    number('status', exchange.status)
  )
}

function decidedMembers(exchange: Exchange, { config }: EndParts): string {
  const { hitlId, grantId } = exchange
  return decisionMembers(exchange, config.Logging.Values) + plain('hitlId', hitlId) + plain('grantId', grantId)
}

const traceMembers = ({ trace }: Exchange): string =>
  trace?.isKept ? `,"traceId":"${trace.traceId}","spanId":"${trace.spanId}"` : ''

function failureMembers({ refusal, cause, failure, sentAgain }: Exchange): string {
  const again = sentAgain ? ',"sentAgain":true' : ''
  return plain('refusal', refusal) + text('cause', cause) + plain('failure', failure) + again
}

function decisionMembers({ decision, decisionNs }: Exchange, values: boolean): string {
  if (decision === undefined) return ''
  const { source, policy, rule, evaluated, risk, shadow } = decision
  const head = plain('decision', decision.decision) + plain('source', source) + text('policy', policy)
  const withheld =
    decision.decision === 'Allow'
      ? ''
      : text('reason', decision.reason) + (values ? list('matched', decision.matched.map(matchedText)) : '')
  const score = risk === null ? '' : number('risk', risk.score) + (risk.atLeast === true ? ',"riskAtLeast":true' : '')
  const would = shadow.length === 0 ? '' : list('shadow', shadow.map(shadowText))
  const evaluation = text('rule', rule) + number('evaluated', evaluated)
  return head + evaluation + withheld + score + would + number('durationNs', decisionNs)
}

// Members of the line as JSON text: JSON.stringify of all of them takes twice as long.

type Name = keyof LogFields

/** Of a text that has nothing to escape. */
const plain = (name: Name, value: string | undefined) => (value === undefined ? '' : `,"${name}":"${value}"`)
const rounded = (ms: number): number => Math.round(ms * 100) / 100
const number = (name: Name, value: number) => `,"${name}":${value}`
const list = (name: Name, values: readonly string[]) => `,"${name}":${JSON.stringify(values)}`

const escaped = /[^\x20\x21\x23-\x5b\x5d-\x7e]/

function text(name: Name, value: string | null | undefined): string {
  if (value === undefined) return ''
  return `,"${name}":${value === null || escaped.test(value) ? JSON.stringify(value) : `"${value}"`}`
}

function matchedText({ condition, actual }: MatchedCondition): string {
  return actual === null ? condition : `${condition} (was ${JSON.stringify(actual)})`
}

function shadowText({ policy: other, rule, would }: ShadowOutcome): string {
  return `${other === undefined ? '' : `${other}/`}${rule}: ${would}`
}
