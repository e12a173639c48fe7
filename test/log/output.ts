/** Threat T36 of SECURITY.md. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { testdir } from '../fixtures/testdir.ts'

const source = fileURLToPath(new URL('../../src/log/log.ts', import.meta.url))

interface Logger {
  readonly pid: number
  readonly stdin: Writable
  /** Standard output, when it is a pipe. */
  readonly stdout: Readable
  /** Resolves with the match once standard error holds it. */
  shows(pattern: RegExp): Promise<RegExpMatchArray>
  readonly ended: Promise<number | string | null>
}

/** A process that does `body` with a log, and ends when its standard input does. Limits as `ulimit` takes them. */
function startLogger(t: Test, body: string, { stdout = 'pipe' as 'pipe' | number, ulimit = '-S -c 0' } = {}): Logger {
  const script = `
    const { createLog } = await import(${JSON.stringify(source)})
    const log = createLog('info', { complain: text => process.stderr.write(text + '\\n') })
    process.on('exit', log.flush)
    process.stdin.on('end', () => process.exit(0)).resume()
    const logged = (lines, characters) => {
      for (let n = 0; n < lines; n++) log.info({ reason: 'x'.repeat(characters) }, 'exchange')
    }
    const statusIs = async isSo => {
      while (!isSo(log.status())) await new Promise(resolve => setTimeout(resolve, 5))
      process.stderr.write(JSON.stringify(log.status()) + '\\n')
    }
    ${body}
  `
  const command = ['-c', `ulimit ${ulimit} && exec "$@"`, 'sh', process.execPath]
  const child = spawn('sh', [...command, '--input-type=module', '--eval', script], {
    stdio: ['pipe', stdout, 'pipe'],
  }) as ChildProcessWithoutNullStreams
  t.teardown(() => child.kill('SIGKILL'))
  let err = ''
  child.stderr.on('data', chunk => {
    err += chunk
  })
  return {
    pid: child.pid as number,
    stdin: child.stdin,
    stdout: child.stdout,
    ended: once(child, 'exit').then(([code, signal]) => code ?? signal),
    async shows(pattern) {
      for (;;) {
        const match = pattern.exec(err)
        if (match !== null) return match
        await once(child.stderr, 'data')
      }
    },
  }
}

t.test('a reader that is stuck costs bounded memory, and gets the number of lines that it missed', async t => {
  const logger = startLogger(t, 'logged(50_000, 1_000); await statusIs(({ dropped }) => dropped > 0)')
  await logger.shows(/"dropped"/)
  let written = 0
  for await (const line of createInterface({ input: logger.stdout })) {
    const { level, message, count } = JSON.parse(line)
    if (level !== 'warn') written += 1
    else {
      t.match(message, /^log lines were dropped/)
      t.equal(written + count, 50_000, 'every line was written or counted')
      logger.stdin.end()
    }
  }
  t.ok(written > 20_000 && written < 40_000, `${written} lines of a kilobyte waited`)
})

t.test('a reader that never reads is named, and does not hold the end up for good', async t => {
  const logger = startLogger(t, `logged(10_000, 100); await statusIs(({ problem }) => problem === 'stalled')`)
  await logger.shows(/log lines cannot be written \(stalled\)[\s\S]*"problem":"stalled"/)
  logger.stdin.end()
  t.equal(await logger.ended, 0)
})

t.test('a reader that is gone is named, and every line from then on is counted', async t => {
  const body = `
    await new Promise(resolve => process.stdin.once('data', resolve))
    logged(10, 100)
    await statusIs(({ problem }) => problem === 'EPIPE')
    logged(5, 100)
    await statusIs(({ dropped }) => dropped === 15)`
  const logger = startLogger(t, body)
  logger.stdout.destroy()
  logger.stdin.write('now')
  await logger.shows(/cannot be written \(EPIPE\)[\s\S]*"dropped":10[\s\S]*"dropped":15/)
  logger.stdin.end()
  t.equal(await logger.ended, 0)
})

t.test('a full disk is named, and does not hold up the end', async t => {
  const stdout = openSync('/dev/full', 'w')
  const logger = startLogger(t, `logged(10, 100); await statusIs(({ problem }) => problem === 'ENOSPC')`, { stdout })
  await logger.shows(/cannot be written \(ENOSPC\)[\s\S]*"problem":"ENOSPC"/)
  logger.stdin.end()
  t.equal(await logger.ended, 0)
})

t.test('a file that may not grow is written again once it may, and no line is lost or torn', async t => {
  const file = `${testdir(t)}/log`
  const body = `
    logged(100, 100)
    await statusIs(({ problem }) => problem === 'EFBIG')
    await statusIs(({ problem }) => problem === undefined)`
  const logger = startLogger(t, body, { stdout: openSync(file, 'w'), ulimit: '-S -f 4' })
  await logger.shows(/"problem":"EFBIG"/)
  spawnSync('prlimit', ['--pid', String(logger.pid), '--fsize=unlimited'])
  await logger.shows(/\{"dropped":0\}/)
  logger.stdin.end()
  t.equal(await logger.ended, 0)
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  t.equal(lines.map(line => JSON.parse(line)).length, 100)
})
