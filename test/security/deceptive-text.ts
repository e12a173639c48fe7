/** Threat T36 of SECURITY.md: what an agent wrote cannot deceive the eye of the person who reads it. */

import t from 'tap'
import { escapeDeceptive, escapeLines, printableJson } from '../../src/base/deceptive.ts'
import { runCommand } from '../../src/cli/commands.ts'
import { bufferLines } from '../../src/log/lines.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startReview } from '../fixtures/review.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { readEvents } from '../fixtures/sse.ts'

/** Bidi, C1, zero width, tags, fillers, variation selectors, separators, private use, a lone surrogate, odd spaces. */
const tricks = '\u202e\u2066\u009b\u0085\u200b\u200d\ufeff\u{e0041}\u3164\u115f\ufe0f\u{e0101}\u2028\ue000\u00a0\u2800'
/** Whether any of it stands in a text as itself. Line ends and tabs are layout. */
const isRaw = (text: string) => /[^\x20-\x7e\n\t…]/.test(text)

t.test('each such character is written out; letters of every script and emoji stay', async t => {
  for (const char of `${tricks}\ud800\r\u001b\u007f`) {
    const code = char.codePointAt(0)!.toString(16)
    t.equal(escapeDeceptive(`a${char}b`), `a\\u{${code}}b`, code)
  }
  for (const text of ['grüße', '日本語', 'שלום', 'नमस्ते', '🎈', 'é', '½ €']) t.equal(escapeDeceptive(text), text)
  t.equal(escapeLines('a\n\tb\r'), 'a\n\tb\\u{d}')
  t.equal(JSON.parse(printableJson(JSON.stringify(tricks))), tricks, 'escapes of JSON keep the value')
  t.notOk(isRaw(printableJson(JSON.stringify({ [tricks]: [tricks] }, null, 2))))
})

t.test('a held request shows it in no list, detail, event, webhook, audit entry or line of the log', async t => {
  const [generic, slack] = [await startOrigin(t), await startOrigin(t)]
  const Events = ['pending', 'denied']
  const Webhooks = [
    { Url: generic.url, Events },
    { Url: slack.url, Events, Format: 'slack' },
  ]
  const review = await startReview(t, { config: { HumanInTheLoop: { Threshold: 1, Webhooks } } })
  const conditions = [{ field: 'input.body.note', operator: 'contains', value: 'pay' }]
  const rules = [{ name: 'payments', effect: 'Hitl', conditions }]
  const policyName = await review.policy({ name: 'paying', default: 'Allow', rules })
  const bot = await review.agent({ policyName })
  const authorization = { Authorization: `Bearer ${review.reviewer.token}` }
  const reader = await readEvents(t, `${review.url}/hitl/events`, authorization)
  const headers = { 'Content-Type': 'application/json', 'X-Note': 'a\u009b31m\u0085b\u00a0c' }
  const body = JSON.stringify({ note: `pay ${tricks}`, [tricks]: 1 })
  const id = await review.hold('/things', { bot, headers, body })
  const event = await reader.next()
  const list = await (await review.call('GET', '/hitl')).text()
  const detail = await (await review.call('GET', `/hitl/${id}`)).text()
  const own = await (await review.call('GET', `/hitl/status/${id}`, { token: bot.token })).text()
  await review.deny(id, { comment: tricks })
  const audit = (await review.manage('GET', '/audit')).text
  const trail = (await review.manage('GET', '/audit/export')).text
  const hooks = await eventually(
    () => [...generic.seen, ...slack.seen].filter(({ done }) => done).map(seen => seen.body.toString()),
    bodies => bodies.length === 4,
  )
  t.equal(hooks.length, 4)
  const [line] = await review.exchanges(1)
  const shown = { list, detail, own, audit, trail, hooks: hooks.join(''), line: JSON.stringify(line) }
  for (const [place, text] of Object.entries(shown)) {
    t.notOk(isRaw(text), `${place}: ${text}`)
    // The log has operands of rules and no values of requests.
    if (place !== 'line') t.match(text, /\\u\{?202e/, place)
  }
  // What a client has decoded is for the eye as well.
  const read = { event: event?.data, list: JSON.parse(list), detail: JSON.parse(detail), audit: JSON.parse(audit) }
  for (const [place, value] of Object.entries(read)) t.notOk(JSON.stringify(value).includes('\u202e'), place)
  const { pending } = JSON.parse(detail)
  t.equal(pending.body, escapeLines(body))
  t.equal(pending.headers['x-note'], 'a\\u{9b}31m\\u{85}b\\u{a0}c')
  await reader.close()
})

t.test('the log writes it as escapes of JSON', async t => {
  let written = ''
  const write = (bytes: Buffer) => {
    written += bytes
  }
  const lines = bufferLines({ write, flush: () => {} })
  lines.write(`${JSON.stringify({ error: tricks })}\n`)
  lines.write(`{"plain":1}\n`)
  lines.flush()
  t.notOk(isRaw(written))
  t.equal(JSON.parse(written.split('\n')[0] as string).error, tricks)
  t.match(written, /\n\{"plain":1\}\n$/)
})

t.test('commands print none of it', async t => {
  const shell = fakeShell(['policy', 'replay', tricks, tricks])
  await runCommand(shell)
  t.notOk(isRaw([...shell.printed, ...shell.complained].join('\n')))
})
