import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SecretSetting } from '../../src/config/credentials.ts'
import { createSecrets } from '../../src/credentials/secrets.ts'
import { createClock } from '../fixtures/clock.ts'
import { testdir } from '../fixtures/testdir.ts'

const base: SecretSetting = {
  Name: 'key',
  FromEnv: undefined,
  FromFile: undefined,
  FromCommand: [],
  FromUrl: undefined,
  Credential: undefined,
  Body: undefined,
  EverySeconds: 60,
  Pointer: undefined,
  Encoding: 'Text',
}
const clock = createClock()
const noStore = () => Promise.reject(new Error('there is no store'))
const write = (path: string, text: string) => writeFileSync(path, text, { mode: 0o600 })
const open = (
  setting: Partial<SecretSetting>,
  baseDirectory = '.',
  env = {},
  readUrl = noStore as () => Promise<string>,
) => createSecrets([{ ...base, ...setting }], { env, baseDirectory, readUrl, clock })

t.test('a secret comes from the environment, a file or a program', async t => {
  t.equal(await open({ FromEnv: 'KEY' }, '.', { KEY: 'k-1' }).read('key'), 'k-1')
  await t.rejects(open({ FromEnv: 'KEY' }).read('key'), /the environment variable KEY does not exist/)
  const directory = testdir(t)
  await t.rejects(open({ FromFile: 'key' }, directory).read('key'), /does not exist/)
  write(join(directory, 'key'), 'k-2\n')
  t.equal(await open({ FromFile: 'key' }, directory).read('key'), 'k-2')
  chmodSync(join(directory, 'key'), 0o644)
  await t.rejects(open({ FromFile: 'key' }, directory).read('key'), /chmod 600/)
  const FromCommand = [process.execPath, '-e', 'console.log(process.argv[1])', '$(id) `id`']
  t.equal(await open({ FromCommand }).read('key'), '$(id) `id`', 'no shell reads the arguments')
})

t.test('a program that fails is named with the reason, and never what it printed', async t => {
  const failing = { FromCommand: [process.execPath, '-e', 'console.error("k-123"); process.exit(3)'] }
  const error = await open(failing)
    .read('key')
    .catch(error => error)
  t.match(error.message, /ended with exit code 3$/)
  t.notMatch(error.message, /k-123/)
  await t.rejects(open({ FromCommand: ['/no/such/program'] }).read('key'), /does not exist/)
  const long = { FromCommand: [process.execPath, '-e', 'console.log("x".repeat(100000))'] }
  await t.rejects(open(long).read('key'), /printed more than 65536 bytes/)
})

t.test('a pointer finds the value in JSON', async t => {
  const env = { KEY: JSON.stringify({ data: { 'a/b': ['x', 'k-1'], n: 7 } }), TEXT: 'k-123' }
  const read = (Pointer: string, FromEnv = 'KEY') => open({ FromEnv, Pointer }, '.', env).read('key')
  t.equal(await read('/data/a~1b/1'), 'k-1')
  t.equal(await read('/data/n'), '7')
  for (const pointer of ['/data', '/none', '/data/__proto__', '/data/constructor/name']) {
    await t.rejects(read(pointer), new RegExp(`has no text at ${pointer}`), pointer)
  }
  const error = await read('/x', 'TEXT').catch(error => error)
  t.match(error.message, /is not JSON/)
  t.notMatch(error.message, /k-123/)
})

t.test('a file is seen to change when it is written, replaced, or a link to its folder is swapped', async t => {
  const directory = testdir(t)
  for (const [folder, text] of [
    ['one', 'k-1'],
    ['two', 'k-2'],
  ] as const) {
    mkdirSync(join(directory, folder))
    write(join(directory, folder, 'key'), text)
  }
  symlinkSync('one', join(directory, 'now'))
  const secrets = open({ FromFile: 'now/key' }, directory)
  t.strictSame(await secrets.changed(), [], 'the first look has nothing to compare with')
  t.strictSame(await secrets.changed(), [])
  // As Kubernetes does it with mounted secrets.
  symlinkSync('two', join(directory, 'next'))
  renameSync(join(directory, 'next'), join(directory, 'now'))
  t.strictSame(await secrets.changed(), ['key'])
  t.equal(await secrets.read('key'), 'k-2')
  write(join(directory, 'two/other'), 'k-3')
  renameSync(join(directory, 'two/other'), join(directory, 'two/key'))
  t.strictSame(await secrets.changed(), ['key'])
  t.strictSame(await secrets.changed(), [])
})

t.test('a secret in a store is looked at again after its time, and a failure counts as a change', async t => {
  let answer = 'azEyMw=='
  let looks = 0
  const readUrl = async () => {
    looks += 1
    if (answer === '') throw new Error('the store is away')
    return JSON.stringify({ value: answer })
  }
  const setting = { FromUrl: 'https://store.example/key', Pointer: '/value', Encoding: 'Base64' } as const
  const secrets = open(setting, '.', {}, readUrl)
  t.strictSame(await secrets.changed(), [], 'nobody has read it')
  t.equal(await secrets.read('key'), 'k123')
  const changedLater = async () => {
    clock.advance(60_000)
    await secrets.changed()
    await new Promise(setImmediate)
    return secrets.changed()
  }
  t.strictSame(await changedLater(), [])
  t.equal(looks, 2)
  answer = 'azQ1Ng=='
  t.strictSame(await changedLater(), ['key'])
  t.equal(await secrets.read('key'), 'k456')
  t.strictSame(await secrets.changed(), [], 'it is told once')
  answer = ''
  t.strictSame(await changedLater(), ['key'])
  t.strictSame(await secrets.changed(), [])
})
