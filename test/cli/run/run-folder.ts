import { existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inRunFolder } from '../../../src/cli/run/run-folder.ts'
import { testdir } from '../../fixtures/testdir.ts'

/** Larger than any process id of Linux. */
const gone = 4_194_305

t.test('the folder of a run that was killed is removed by the next one, and nothing else is', async t => {
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = testdir(t)
  t.teardown(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
  const temporary = process.env['TMPDIR']
  const prefix = await inRunFolder(process.pid, async folder => {
    t.equal(lstatSync(folder).mode & 0o777, 0o700)
    return folder.slice(temporary.length + 1).replace(/\d+-\w+$/, '')
  })
  t.strictSame(readdirSync(temporary), [], 'its own is removed at the end')
  const make = (name: string) => {
    mkdirSync(join(temporary, name))
    writeFileSync(join(temporary, name, 'ca.pem'), 'x')
  }
  const kept = [`${prefix}${process.pid}-abcdef`, 'agent-gateway-run-1-4194305-abcdef', `${prefix}other`, 'other']
  for (const name of [`${prefix}${gone}-abcdef`, ...kept]) make(name)
  symlinkSync(join(temporary, 'other'), join(temporary, `${prefix}${gone}-link`))
  await inRunFolder(process.pid, async () => {})
  t.strictSame(new Set(readdirSync(temporary)), new Set([...kept, `${prefix}${gone}-link`]))
  t.ok(existsSync(join(temporary, 'other', 'ca.pem')))
})
