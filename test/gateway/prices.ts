import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseTarget } from '../../src/base/target.ts'
import { openPrices } from '../../src/gateway/prices.ts'
import { eventually, startGateway, testConfig } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const now = Date.parse('2026-03-10T12:00:00Z')
const target = parseTarget('https://api.openai.com/')
if (typeof target === 'string') throw new Error(target)
const tokens = { input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }
const call = (model: string) => ({ origin: target.origin, provider: 'openai' as const, model, tokens })

const fileOf = (price: number) =>
  JSON.stringify({ 'gpt-4o': { litellm_provider: 'openai', input_cost_per_token: price / 1e6 } })
const settings = { Metering: { Usage: true, PricesFile: 'prices.json' } }

t.test('without Metering:Usage no prices are read', async t => {
  t.equal(await openPrices(testConfig({ Metering: { PricesFile: 'missing.json' } }), '/'), undefined)
})

t.test('the prices of the file come before the built-in ones, and are read again', async t => {
  const folder = testdir(t, { 'prices.json': fileOf(7) })
  const prices = await openPrices(testConfig(settings), folder)
  t.equal(prices?.costOf(call('gpt-4o'), now), 7)
  t.ok((prices?.costOf(call('gpt-4o-mini'), now) ?? 0) > 0, 'a built-in one')
  writeFileSync(join(folder, 'prices.json'), fileOf(8))
  await prices?.reload()
  t.equal(prices?.costOf(call('gpt-4o'), now), 8)
})

t.test('a file that cannot be read keeps the gateway from starting, and says why', async t => {
  const bad: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{}, /Metering:PricesFile: .*prices\.json cannot be read \(ENOENT\)/],
    [{ 'prices.json': '{' }, /Metering:PricesFile: .*prices\.json is no JSON/],
    [{ 'prices.json': '{}' }, /Metering:PricesFile: .*prices\.json has no price of a known provider/],
  ]
  for (const [files, message] of bad) {
    await t.rejects(openPrices(testConfig(settings), testdir(t, files)), { name: 'StartupError', message })
  }
})

t.test('a file that became bad leaves the old prices', async t => {
  const folder = testdir(t, { 'prices.json': fileOf(7) })
  const prices = await openPrices(testConfig(settings), folder)
  writeFileSync(join(folder, 'prices.json'), '[]')
  await t.rejects(prices?.reload() ?? Promise.resolve(), { name: 'StartupError' })
  t.equal(prices?.costOf(call('gpt-4o'), now), 7)
})

for (const threads of [1, 2]) {
  t.test(`a gateway reads the file again on a signal, ${threads} threads`, async t => {
    const directory = testdir(t, { 'prices.json': fileOf(7), policies: {} })
    const System = { Server: { Threads: threads } }
    const gateway = await startGateway(t, {
      directory,
      config: { ...settings, System },
      alone: 'its file is read again',
    })
    t.equal(await gateway.gateway.reload(), true)
    writeFileSync(join(directory, 'prices.json'), '[]')
    t.equal(await gateway.gateway.reload(), false)
    t.ok(await eventually(() => gateway.log.find(({ message }) => /prices of models could not/.test(message)), Boolean))
  })
}
