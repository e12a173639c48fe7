import { randomBytes } from 'node:crypto'
/** Threat T10 of SECURITY.md. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { StartupError } from '../../src/base/refusals.ts'
import { secretProblem } from '../../src/config/entropy.ts'
import { deriveKey, openSigningKeys } from '../../src/tokens/key.ts'
import { testdir } from '../fixtures/testdir.ts'
import { signingSecret } from '../fixtures/tokens.ts'

const generated = { Secret: undefined, PreviousSecrets: [] }

t.test('without a configured secret one is made once, in a file for its owner alone', async t => {
  const directory = join(testdir(t), 'data')
  const first = await openSigningKeys(generated, directory)
  const file = join(directory, 'signing.key')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(directory).mode & 0o777, 0o700)
  t.ok(first.secret.length >= 64)
  const second = await openSigningKeys(generated, directory)
  t.strictSame(second.secret, first.secret)
  t.strictSame(readdirSync(directory), ['signing.key'], 'no temporary file is left')
})

t.test('two processes that start together end up with the same secret', async t => {
  const directory = testdir(t)
  const opened = await Promise.all([1, 2, 3, 4].map(() => openSigningKeys(generated, directory)))
  for (const keys of opened) t.strictSame(keys.secret, opened[0]!.secret)
})

t.test('a configured secret is used and no file is made', async t => {
  const directory = testdir(t)
  const keys = await openSigningKeys({ Secret: signingSecret, PreviousSecrets: [] }, directory)
  t.equal(Buffer.from(keys.secret).toString(), signingSecret)
  t.equal(keys.current.extractable, false)
  t.strictSame(readdirSync(directory), [])
})

t.test('a key file that others can read, or that was cut short, stops the start', async t => {
  const directory = testdir(t, { 'signing.key': signingSecret })
  const file = join(directory, 'signing.key')
  chmodSync(file, 0o644)
  await t.rejects(openSigningKeys(generated, directory), { name: 'StartupError', message: /chmod 600/ })
  writeFileSync(file, signingSecret.slice(0, 20))
  chmodSync(file, 0o600)
  await t.rejects(openSigningKeys(generated, directory), { name: 'StartupError', message: /32 bytes or more/ })
  t.equal(readFileSync(file, 'utf8').length, 20, 'and is left as it is')
})

t.test('a data directory that cannot be written stops the start', async t => {
  const directory = testdir(t, { file: '' })
  await t.rejects(openSigningKeys(generated, join(directory, 'file')), StartupError)
  mkdirSync(join(directory, 'signing.key'))
  chmodSync(join(directory, 'signing.key'), 0o700)
  await t.rejects(openSigningKeys(generated, directory), StartupError)
})

t.test('weak secrets are refused with the name of the key and never the value', async t => {
  const weak = [
    '',
    'k7Jq2mZx9',
    'a'.repeat(64),
    'abc123'.repeat(10),
    'this-is-a-secret-for-development-only-0001',
    'CHANGEME-CHANGEME-CHANGEME-CHANGEME-1',
    'a-string-secret-at-least-256-bits-long',
    'Password1Password2Password3Password4',
    '0123456789abcdef0123456789abcdef',
    'correct horse battery staple 1234',
  ]
  for (const value of weak) {
    for (const settings of [
      { Secret: value, PreviousSecrets: [] },
      { Secret: signingSecret, PreviousSecrets: [value] },
    ]) {
      const opened = openSigningKeys(settings, 'unused')
      const message = await opened.then(
        () => 'accepted',
        (error: StartupError) => `${error.name} ${error.message}`,
      )
      t.match(message, /^StartupError Security:AgentAuth:TokenIssuance:(Secret|PreviousSecrets): /)
      if (value !== '') t.notOk(message.includes(value))
    }
  }
})

t.test('random secrets of 24 bytes and more in base64 are never refused', async t => {
  // Bytes that fast-check draws are small more often than not, which is not random.
  const lengths = fc.integer({ min: 24, max: 64 })
  fc.assert(fc.property(lengths, length => secretProblem(randomBytes(length).toString('base64')) === undefined))
  t.pass('holds')
})

t.test('derived keys differ by purpose and by secret, and are the same each time', async t => {
  const secret = Buffer.from(signingSecret)
  const key = deriveKey(secret, 'sealing')
  t.equal(key.length, 32)
  t.strictSame(deriveKey(secret, 'sealing'), key)
  t.strictNotSame(deriveKey(secret, 'webhooks'), key)
  t.strictNotSame(deriveKey(Buffer.from(`${signingSecret}x`), 'sealing'), key)
  t.strictNotSame(Buffer.from(key), secret.subarray(0, 32))
})
