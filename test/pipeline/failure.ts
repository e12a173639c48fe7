import t from 'tap'
import { failureKind, outcomeOfError, ownLimit, refusalOf } from '../../src/pipeline/failure.ts'
import { UpstreamError } from '../../src/upstream/handler.ts'
import { UpstreamBusyError } from '../../src/upstream/waiting-line.ts'

const systemError = (code: string): Error => Object.assign(new Error(code), { code })

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
    t.equal(ownLimit(error), kind, code)
    t.equal(outcomeOfError(error, true), 'neutral', code)
    t.match(refusalOf(error), { refusal: 'busy', status: 503, headers: ['Retry-After', '1'] }, code)
  }
  const waited = new UpstreamBusyError()
  t.equal(outcomeOfError(waited, false), 'neutral')
  t.match(refusalOf(waited), { refusal: 'upstream_busy', headers: ['Retry-After', '1'] })
})

t.test('an answer that is slow counts for no circuit', async t => {
  for (const kind of ['headers_timeout', 'body_timeout'] as const) {
    const error = new UpstreamError(kind, '')
    t.equal(outcomeOfError(error, true), 'neutral', kind)
    t.equal(refusalOf(error).refusal, 'upstream_timeout', kind)
  }
})

t.test('a failure of the upstream counts', async t => {
  for (const error of [systemError('ECONNREFUSED'), new UpstreamError('malformed', ''), new Error('odd')]) {
    t.equal(ownLimit(error), undefined)
    t.equal(outcomeOfError(error, true), 'failure')
  }
  t.equal(outcomeOfError(systemError('ECONNREFUSED'), false), 'unreachable')
  t.equal(outcomeOfError(new Error('odd'), false), 'failure', 'what the agent sent may be the reason')
  t.equal(refusalOf(systemError('ECONNRESET')).refusal, 'upstream_failed')
  t.equal(refusalOf(systemError('ETIMEDOUT')).refusal, 'upstream_timeout')
})
