import { chmodSync } from 'node:fs'
import t from 'tap'
import { fileFindings, ownersIn, spaceOf } from '../../../src/cli/doctor/machine.ts'
import { testConfig } from '../../fixtures/gateway.ts'
import { testdir } from '../../fixtures/testdir.ts'

t.test('the limit of open files is compared with all connections together', async t => {
  const config = testConfig({ System: { Server: { MaxConnections: 1_000 } }, Proxy: { MaxConnections: 100 } })
  const at = async (limit: number | undefined) => (await fileFindings({ config }, limit))[0]
  t.match(await at(1_356), { level: 'ok' })
  t.match(await at(1_355), { level: 'warn', remedy: /LimitNOFILE=1356/ })
  t.match(await at(511), {
    level: 'fail',
    text: 'this process may open 511 files; all connections together can need 1356',
  })
  t.match(await fileFindings({ config }), [{ text: /may open \d+ files/ }])
})

t.test('a folder needs room for what may be held, and 64 MB in any case', async t => {
  const of = (megabytes: number) => spaceOf('/data', { bavail: megabytes * 256, bsize: 4_096 }, 1_048_576)
  t.match(of(65), { level: 'ok', text: '/data has 65 MB free' })
  t.match(of(64), { level: 'warn', text: /held requests alone may take 1 MB/ })
  t.match(of(63), { level: 'fail', remedy: /Free space there/ })
})

t.test('a folder of another user than the one that asks fails, unless root asks', async t => {
  const folder = testdir(t, {})
  chmodSync(folder, 0o750)
  const own = process.geteuid?.() ?? 0
  t.match(await ownersIn(folder, own + 1), [
    { level: 'fail', text: `${folder} belongs to user ${own}, this is user ${own + 1}` },
  ])
  for (const self of [own, 0, undefined]) t.match(await ownersIn(folder, self), [{ level: 'ok' }])
})
