import t from 'tap'
import { RenewedAnswer } from '../../../src/pipeline/outbound/renewal.ts'
import type { Control, ResponseHead, UpstreamHandler } from '../../../src/upstream/handler.ts'

const head = (status: number): ResponseHead => ({ status, reason: '', fields: [], contentLength: undefined })

/** An answer that is held back, what its reader got, and what was done to its connection. */
function open() {
  const got: string[] = []
  const reader: UpstreamHandler = {
    onRequestStart: () => got.push('begun'),
    onBodySent: bytes => got.push(`sent ${bytes}`),
    onBodyWritten: () => got.push('written'),
    onInterim: ({ status }) => got.push(`interim ${status}`),
    onResponseStart: ({ status }) => got.push(`head ${status}`),
    onResponseData: chunk => got.push(chunk.length < 100 ? String(chunk) : `${chunk.length} bytes`),
    onResponseEnd: trailers => got.push(`end ${trailers}`),
    onResponseError: error => got.push(`error ${error.message}`),
  }
  const control: Control = {
    abort: reason => got.push(`abort: ${reason.message}`),
    pause: () => got.push('pause'),
    resume: () => got.push('resume'),
  }
  const renewal = Promise.withResolvers<boolean>()
  const is = { over: false, unsendable: false, gone: false }
  const place = () => {
    got.push('place')
    return !is.gone
  }
  const resend = () => {
    if (is.unsendable) throw new Error('no credential')
    got.push('resend')
  }
  const answer = new RenewedAnswer(reader, { renew: () => renewal.promise, place, resend, isOver: () => is.over })
  answer.onRequestStart(control)
  return {
    answer,
    got,
    is,
    renewal,
    settled: () =>
      renewal.promise
        .then(
          () => {},
          () => {},
        )
        .then(() => {}),
  }
}

t.test('other answers pass as they come', async t => {
  const { answer, got } = open()
  answer.onBodySent(3)
  answer.onBodyWritten()
  answer.onInterim(head(103))
  answer.onResponseStart(head(200))
  answer.onResponseData(Buffer.from('a'))
  answer.onResponseEnd(['X', 'y'])
  t.strictSame(got, ['begun', 'sent 3', 'written', 'interim 103', 'head 200', 'a', 'end X,y'])
})

t.test(
  'with another value the answer is dropped, with all that still comes of it, and the request is sent again',
  async t => {
    const { answer, got, renewal, settled } = open()
    answer.onResponseStart(head(401))
    answer.onResponseData(Buffer.from('who'))
    renewal.resolve(true)
    await settled()
    answer.onResponseData(Buffer.from('are you'))
    answer.onBodySent(1)
    answer.onResponseEnd([])
    answer.onResponseError(new Error('aborted'))
    t.strictSame(got, ['begun', 'pause', 'place', 'abort: the request is sent with another credential', 'resend'])
  },
)

t.test('without one it is passed on: under way, ended or broken', async t => {
  for (const end of ['', 'end X,y', 'error broken']) {
    const { answer, got, renewal, settled } = open()
    answer.onResponseStart(head(401))
    answer.onResponseData(Buffer.from('who'))
    if (end === 'end X,y') answer.onResponseEnd(['X', 'y'])
    if (end === 'error broken') answer.onResponseError(new Error('broken'))
    renewal.resolve(false)
    await settled()
    t.strictSame(got, ['begun', 'pause', 'head 401', 'who', end || 'resume'])
  }
})

t.test('it is passed on when the renewal fails, and when it is longer than an explanation', async t => {
  const failed = open()
  failed.answer.onResponseStart(head(401))
  failed.renewal.reject(new Error('the other thread has ended'))
  await failed.settled()
  t.strictSame(failed.got, ['begun', 'pause', 'head 401', 'resume'])
  const long = open()
  long.answer.onResponseStart(head(401))
  long.answer.onResponseData(Buffer.alloc(65_537))
  t.strictSame(long.got, ['begun', 'pause', 'head 401', '65537 bytes', 'resume'])
  long.renewal.resolve(true)
  await long.settled()
  t.equal(
    long.got.length,
    5,
    'the agent has the answer: nothing is sent again, and its value stays the one that is hidden',
  )
  const gone = open()
  gone.answer.onResponseStart(head(401))
  gone.is.gone = true
  gone.renewal.resolve(true)
  await gone.settled()
  t.strictSame(gone.got, ['begun', 'pause', 'place', 'head 401', 'resume'], 'it has ended again')
})

t.test('an answer that had ended is not aborted', async t => {
  const { answer, got, renewal, settled } = open()
  answer.onResponseStart(head(401))
  answer.onResponseEnd([])
  renewal.resolve(true)
  await settled()
  t.strictSame(got, ['begun', 'pause', 'place', 'resend'])
})

t.test('nothing is passed on of an exchange that was answered meanwhile', async t => {
  const { answer, got, is, renewal, settled } = open()
  answer.onResponseStart(head(401))
  answer.onResponseData(Buffer.from('who'))
  is.over = true
  renewal.resolve(false)
  await settled()
  t.strictSame(got, ['begun', 'pause'])
})

t.test('a request that cannot be sent again fails, and nothing else does', async t => {
  const { answer, got, is, renewal, settled } = open()
  answer.onResponseStart(head(401))
  is.unsendable = true
  renewal.resolve(true)
  await settled()
  await settled()
  t.match(got.at(-1), 'error no credential')
})
