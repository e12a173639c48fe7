import t from 'tap'
import { changeOf, createLiveSettings, isReloaded } from '../../src/config/live.ts'
import { schema } from '../../src/config/schema.ts'
import { settingsOf } from '../../src/config/setting.ts'
import { testConfig } from '../fixtures/gateway.ts'

t.test('a new configuration changes what SIGHUP reads again, and names the rest', async t => {
  const start = testConfig({ Logging: { Level: 'info' }, System: { Server: { DrainSeconds: 5 } } })
  const next = testConfig({
    ...{ Logging: { Level: 'warn', Access: false }, Risk: { BurstPerMinute: 7 } },
    System: { Server: { DrainSeconds: 6 } },
  })
  const { config, changed, needRestart } = changeOf(start, start, next)
  t.strictSame(changed, ['Risk:BurstPerMinute', 'Logging:Level'])
  t.strictSame(needRestart, ['System:Server:DrainSeconds', 'Logging:Access'])
  t.match(config, { Logging: { Level: 'warn', Access: true }, Risk: { BurstPerMinute: 7 } })
  t.equal(config.System.Server.DrainSeconds, 5)
})

t.test('a section that was read before shows the settings in force, and only once all parts are ready', async t => {
  const live = createLiveSettings(testConfig())
  const { Egress } = live.config
  const seen: string[] = []
  live.onChange(async next => {
    await new Promise(setImmediate)
    return () => seen.push(`${next.Egress.DenyHosts} ${Egress.DenyHosts}`)
  })
  const commit = await live.prepare(testConfig({ Egress: { DenyHosts: ['a.example'] }, Policy: { Mode: 'observe' } }))
  t.strictSame([Egress.DenyHosts, seen], [[], []])
  commit()
  t.strictSame([Egress.DenyHosts, seen], [['a.example'], ['a.example a.example']])
  t.equal(live.config.Policy.Mode, 'enforce')
})

t.test('a part that cannot use the settings keeps all others as they were', async t => {
  const live = createLiveSettings(testConfig())
  live.onChange(() => () => t.fail('used'))
  live.onChange(() => {
    throw new Error('not these')
  })
  await t.rejects(live.prepare(testConfig({ Risk: { BurstPerMinute: 7 } })), { message: 'not these' })
  t.not(live.config.Risk.BurstPerMinute, 7)
})

t.test('every kind of setting that is read again is there', async t => {
  const names = [...settingsOf(schema)].map(([path]) => path.join(':')).filter(isReloaded)
  const sections = ['Egress', 'Hosts', 'HumanInTheLoop', 'Logging', 'Risk', 'System', 'Telemetry', 'Trust', 'Upstreams']
  t.strictSame([...new Set(names.map(name => name.split(':')[0]))].toSorted(), sections)
})
