/** Threat T36 of SECURITY.md. */
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { LogFields } from '../../src/log/log.ts'
import { runToEnd } from '../fixtures/process.ts'
import { testdir } from '../fixtures/testdir.ts'

const source = fileURLToPath(new URL('../../src/log/log.ts', import.meta.url))

/** What a process writes that does this with its log, and then ends by itself. */
async function logged(t: Test, level: string, body: string): Promise<(LogFields & Record<string, unknown>)[]> {
  const script = `import { createLog } from ${JSON.stringify(source)}\nconst log = createLog('${level}')\n${body}`
  const folder = testdir(t, { 'script.mjs': script })
  const { code, out } = await runToEnd(t, [], { cwd: folder, script: `${folder}/script.mjs` })
  t.equal(code, 0)
  const lines = out.split('\n')
  t.equal(lines.pop(), '')
  return lines.map(line => JSON.parse(line))
}

t.test('a line is JSON with level, time, the fields and the message', async t => {
  const [line] = await logged(t, 'info', `log.info({ requestId: 'r1', status: 200 }, 'exchange')`)
  t.match(line, { level: 'info', time: /^\d{4}-\d\d-\d\dT.*Z$/, requestId: 'r1', status: 200, message: 'exchange' })
  t.strictSame(Object.keys(line ?? {}), ['level', 'time', 'requestId', 'status', 'message'])
})

t.test('what is less severe than the level is not written, and the rest is written in order', async t => {
  const all = `for (const level of ['debug', 'info', 'warn', 'error']) log[level]({}, level)`
  t.strictSame(
    (await logged(t, 'warn', all)).map(({ level }) => level),
    ['warn', 'error'],
  )
  t.strictSame(
    (await logged(t, 'debug', all)).map(({ level }) => level),
    ['debug', 'info', 'warn', 'error'],
  )
  t.strictSame(await logged(t, 'silent', all), [])
})

t.test('one event is one line, whatever is in it', async t => {
  const evil = 'a\r\n{"level":"info"}\u001b[2J\u0000'
  const lines = await logged(t, 'info', `log.info({ reason: ${JSON.stringify(evil)} }, ${JSON.stringify(evil)})`)
  t.equal(lines.length, 1)
  t.equal(lines[0]?.reason, evil)
})

t.test('an error is logged with its code, its stack and its cause', async t => {
  const body = `
    const top = new Error('on top', { cause: new TypeError('underneath') })
    log.error({ error: Object.assign(top, { code: 'E_TOP' }) }, 'failed')
    log.error({ error: new Error('x', { cause: 'text' }) }, 'failed')
    log.error({ error: 'text' }, 'failed')
  `
  t.match(await logged(t, 'info', body), [
    { error: { name: 'Error', message: 'on top', code: 'E_TOP', cause: 'TypeError: underneath', stack: /on top/ } },
    { error: { cause: 'text' } },
    { error: 'text' },
  ])
})

t.test('an error that is no JSON loses neither the line nor what comes after it', async t => {
  const body = `
    const code = {}
    code.self = code
    log.warn({ agentId: 'a1', error: Object.assign(new Error('odd'), { code }) }, 'failed')
    log.warn({ error: Object.assign(new Error('large'), { code: 1n }), file: 'f' }, 'failed')
    log.info({}, 'after')
  `
  t.match(await logged(t, 'info', body), [
    { agentId: 'a1', error: 'Error: odd', message: 'failed' },
    { error: 'Error: large', file: 'f', message: 'failed' },
    { message: 'after' },
  ])
})

t.test('a process that ends at once gets its lines out first', async t => {
  const lines = await logged(t, 'info', `log.error({}, 'last words'); log.flush(); process.exit(0)`)
  t.match(lines, [{ message: 'last words' }])
})

t.test('lines for the journal begin with their priority', async t => {
  const body = `for (const level of ['debug', 'info', 'warn', 'error']) log[level]({}, level)\nlog.line('"a":1', 'line')`
  const script = `import { createLog } from ${JSON.stringify(source)}\nconst log = createLog('debug', { isJournal: true })\n${body}`
  const folder = testdir(t, { 'script.mjs': script })
  const { out } = await runToEnd(t, [], { cwd: folder, script: `${folder}/script.mjs` })
  const lines = out.trimEnd().split('\n')
  t.strictSame(
    lines.map(line => line.slice(0, 4)),
    ['<7>{', '<6>{', '<4>{', '<3>{', '<6>{'],
  )
  t.doesNotThrow(() => lines.map(line => JSON.parse(line.slice(3))))
})
