import t from 'tap'
import { failureKinds } from '../../src/base/failure-kinds.ts'
import { refuse } from '../../src/base/refusals.ts'
import { createMetrics, createMetricsMemory } from '../../src/telemetry/metrics.ts'
import {
  failureKind,
  isPublicDestination,
  isPublicName,
  noteFailure,
  outcomeOfError,
  refuseFailure,
} from '../../src/upstream/failure.ts'
import { UpstreamBusyError, UpstreamError } from '../../src/upstream/handler.ts'

const systemError = (code: string): Error => Object.assign(new Error(code), { code })

const refusalOf = (error: Error, isPublic: boolean) => refuseFailure(failureKind(error), isPublic)

/** The limit of the gateway that is reported. */
function limitOf(error: Error): string | undefined {
  const told: string[] = []
  const metrics = createMetrics(createMetricsMemory(1))
  const bounds = { reached: (bound: string) => void told.push(bound) }
  noteFailure(failureKind(error), { agentId: undefined, requestId: undefined, host: 'a.test' }, { metrics, bounds })
  return told[0]
}

t.test('a shortage of the gateway itself is 503, has a kind and a limit, and counts for no circuit', async t => {
  for (const [code, kind] of [
    ['EMFILE', 'descriptors'],
    ['ENFILE', 'descriptors'],
    ['ENOBUFS', 'memory'],
    ['ENOMEM', 'memory'],
    ['EADDRNOTAVAIL', 'ports'],
  ] as const) {
    const error = systemError(code)
    t.equal(failureKind(error), kind, code)
    t.equal(limitOf(error), kind, code)
    t.equal(outcomeOfError(error, true), 'neutral', code)
    t.match(refusalOf(error, true), { refusal: 'busy', status: 503, headers: ['Retry-After', '1'] }, code)
  }
  const waited = new UpstreamBusyError()
  t.equal(outcomeOfError(waited, false), 'neutral')
  t.match(refusalOf(waited, true), { refusal: 'upstream_busy', headers: ['Retry-After', '1'] })
})

t.test('an answer that is slow counts for no circuit', async t => {
  for (const kind of ['headers_timeout', 'body_timeout'] as const) {
    const error = new UpstreamError(kind, '')
    t.equal(outcomeOfError(error, true), 'neutral', kind)
    t.equal(refusalOf(error, true).refusal, 'upstream_timeout', kind)
  }
})

t.test('a failure of the upstream counts', async t => {
  for (const error of [systemError('ECONNREFUSED'), new UpstreamError('malformed', ''), new Error('odd')]) {
    t.equal(limitOf(error), undefined)
    t.equal(outcomeOfError(error, true), 'failure')
  }
  t.equal(outcomeOfError(systemError('ECONNREFUSED'), false), 'unreachable')
  t.equal(outcomeOfError(systemError('ECONNREFUSED'), false, true), 'failure', 'others reach another address')
  t.equal(outcomeOfError(new Error('odd'), false), 'failure', 'what the agent sent may be the reason')
  t.equal(refusalOf(systemError('ECONNRESET'), true).refusal, 'upstream_failed')
  t.equal(refusalOf(systemError('ETIMEDOUT'), true).refusal, 'upstream_timeout')
})

t.test('T52 the kind of a failure is named for public destinations alone', async t => {
  for (const kind of failureKinds.filter(
    one => !['busy', 'name_busy', 'descriptors', 'memory', 'ports', 'other'].includes(one),
  )) {
    const [told, kept] = [refuseFailure(kind, true), refuseFailure(kind, false)]
    t.strictSame(told.members, { failure: kind })
    t.not(told.detail, kept.detail, kind)
    t.strictSame(kept, refuse(kept.refusal, undefined, { failure: kind }), kind)
  }
  t.ok(isPublicDestination({ addresses: ['8.8.8.8', '2606:4700::1111'] }))
  for (const ip of ['127.0.0.1', '::1', '10.0.0.1', 'fd00::1', '192.0.2.1', '100.64.0.1']) {
    t.notOk(isPublicDestination({ addresses: ['8.8.8.8', ip] }), ip)
  }
  t.ok(isPublicName('api.exmaple.com'))
  for (const host of ['db', 'db.internal', 'printer.local', 'a.test', 'localhost']) t.notOk(isPublicName(host), host)
})
