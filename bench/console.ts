/**
 * The goals of the console, on the clock of the wall and in Chromium: what the first page weighs, how soon an event is a
 * row, how soon 1,000 rows are painted, how 10,000 scroll, and how 8 MB of JSON open and are compared.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import t from 'tap'
import { buildConsole, startConsole } from '../test/fixtures/console.ts'
import { readOptions } from './lib/options.ts'
import { median } from './lib/stats.ts'
import { table } from './lib/table.ts'

readOptions('usage: node bench/console.ts\n', {})

// 15 pages of 8 MB take longer than tests may.
t.setTimeout(0)
/** Of each measurement. */
const rounds = 5
const bench = await startConsole(t, {
  config: {
    HumanInTheLoop: { MaxPendingRequests: 20_000, MaxPendingPercentPerAgent: 100 },
    System: { RateLimit: { RequestsPerMinute: 1_000_000, Burst: 100_000 } },
  },
})
const { reviewer, hold, signedIn } = bench
const rows: string[][] = []

function report(what: string, values: readonly number[], goal: string): void {
  rows.push([what, String(Math.round(median(values))), String(Math.round(Math.max(...values))), goal])
}

/** Resolves with the time of the page at which a frame with what the selector and a part of its text name was painted. */
const painted = (page: Page, selector: string, part = '') =>
  page.evaluate<number>(`new Promise(resolve => {
    const isShown = () => [...document.querySelectorAll('${selector}')].some(one => one.textContent.includes('${part}'))
    const look = () => isShown()
      ? requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())))
      : requestAnimationFrame(look)
    look()
  })`)

/** The longest task of the page's thread until it is stopped, milliseconds: on the clock, and of the processor alone. */
async function traceTasks(page: Page): Promise<() => Promise<{ readonly wall: number; readonly own: number }>> {
  const session = await page.context().newCDPSession(page)
  const tasks: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => {
    tasks.push(...(value as unknown as TraceEvent[]).filter(({ name }) => name === 'RunTask'))
  })
  const done = new Promise(resolve => session.once('Tracing.tracingComplete', resolve))
  await session.send('Tracing.start', {
    traceConfig: { includedCategories: ['disabled-by-default-devtools.timeline'], excludedCategories: ['*'] },
  })
  return async () => {
    await session.send('Tracing.end')
    await done
    await session.detach()
    const longest = (read: (task: TraceEvent) => number | undefined) =>
      Math.max(...tasks.map(task => (read(task) ?? 0) / 1_000))
    return { wall: longest(({ dur }) => dur), own: longest(({ tdur }) => tdur) }
  }
}

/** Microseconds. */
interface TraceEvent {
  readonly name: string
  readonly dur?: number
  readonly tdur?: number
}

t.test('weight', async () => {
  const folder = buildConsole()
  const html = readFileSync(join(folder, 'index.html'), 'utf8')
  const first = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path!)
  const weigh = (paths: readonly string[]) =>
    paths.reduce((sum, path) => sum + gzipSync(readFileSync(join(folder, path)), { level: 9 }).length, 0) / 1_000
  const all = readdirSync(join(folder, 'assets')).map(name => `assets/${name}`)
  report('first page, gzipped kB', [weigh(first)], '90')
  report('everything, gzipped kB', [weigh(all)], '')
})

t.test('rows', async t => {
  const page = await signedIn(t, reviewer)
  await page.getByText('Live', { exact: true }).waitFor()
  const events: number[] = []
  for (let round = 0; round < rounds * 2; round++) {
    const shown = painted(page, '.row', `/event-${round}`)
    const begun = Date.now()
    const id = await hold(`/event-${round}`)
    events.push((await shown) - begun)
    await (await bench.approve(id)).body?.cancel()
  }
  report('call of an agent to its row, ms', events, '150')

  const id = await hold('/template')
  const [template] = JSON.parse((await bench.manage('GET', '/hitl')).text)
  await bench.deny(id)
  const fill = async (count: number) => {
    const items = Array.from({ length: count }, (_, index) => ({
      ...template,
      id: `filled-${index}`,
      timestamp: new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString(),
    }))
    await page.unroute('**/hitl?limit=*')
    await page.route('**/hitl?limit=*', route => {
      const asked = new URL(route.request().url()).searchParams
      const after = asked.get('after')?.split(',')[1]
      const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1
      return route.fulfill({ json: items.slice(start, start + Number(asked.get('limit'))) })
    })
  }
  await fill(1_000)
  const loads: number[] = []
  for (let round = 0; round < rounds; round++) {
    await page.reload({ waitUntil: 'commit' })
    const at = await painted(page, '.row')
    loads.push(at - (await page.evaluate<number>('performance.timeOrigin')))
  }
  report('load of the page to 1,000 rows painted, ms', loads, '300')

  await fill(10_000)
  await page.reload()
  await page.locator('.row').first().waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  const frames: number[] = []
  for (let step = 0; step < 60; step++) {
    frames.push(
      await page.evaluate<number>(`new Promise(resolve => {
        const begun = performance.now()
        document.querySelector('.list-frame').scrollTop += 9_000
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)))
      })`),
    )
  }
  report('10,000 waiting: a scroll to its frame, ms', frames, '50')
  const presses: number[] = []
  for (let step = 0; step < 20; step++) {
    presses.push(
      await page.evaluate<number>(`new Promise(resolve => {
        const begun = performance.now()
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }))
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)))
      })`),
    )
  }
  report('10,000 waiting: J to its frame, ms', presses, '100')
})

t.test('8 MB of JSON', async t => {
  const page = await signedIn(t, reviewer)
  const item = { name: 'customer', tags: ['a', 'b'], active: true, note: 'x'.repeat(60) }
  const bodyOf = (last: number) =>
    JSON.stringify([...Array.from({ length: 62_000 }, (_, id) => ({ id, ...item })), { last }])
  const headers = { 'Content-Type': 'application/json' }
  const opened: number[] = []
  const opening: number[] = []
  const own: number[] = []
  const compared: number[] = []
  const comparing: number[] = []
  const ownComparing: number[] = []
  for (let round = 0; round < rounds; round++) {
    const bot = await bench.newBot()
    const first = await hold('/large', { bot, headers, body: bodyOf(-1) })
    const opens = await traceTasks(page)
    const begun = Date.now()
    await page.evaluate(`location.hash = '#/requests/${first}'`)
    opened.push((await painted(page, '.json')) - begun)
    const whileOpening = await opens()
    opening.push(whileOpening.wall)
    own.push(whileOpening.own)
    await bench.approve(first)
    await page.evaluate(`location.hash = '#/history'`)
    const second = await hold('/large', { bot, headers, body: bodyOf(round) })
    const compares = await traceTasks(page)
    const start = Date.now()
    await page.evaluate(`location.hash = '#/requests/${second}'`)
    compared.push((await painted(page, '#changes')) - start)
    const whileComparing = await compares()
    comparing.push(whileComparing.wall)
    ownComparing.push(whileComparing.own)
    await bench.approve(second)
    await page.evaluate(`location.hash = '#/history'`)
  }
  report('8 MB of JSON, opened to painted, ms', opened, '1000')
  report('8 MB of JSON, longest task while it opens, ms', opening, '100')
  report('  of the processor', own, '100')
  report('8 MB compared with 8 MB, opened to painted, ms', compared, '')
  report('8 MB compared with 8 MB, longest task, ms', comparing, '100')
  report('  of the processor', ownComparing, '100')
})

t.teardown(() => {
  console.log(
    `${table(['what', 'median', 'worst', 'goal'], rows)}\nLoad of the machine: ${loadavg()
      .map(one => one.toFixed(1))
      .join(', ')}`,
  )
})
