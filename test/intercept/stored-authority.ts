/** The authority that a gateway makes for itself. Threat T75. */
import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { StartupError } from '../../src/base/refusals.ts'
import { type NameConstraints, parsePermitted, permittedBy } from '../../src/intercept/name-constraints.ts'
import {
  authorityFile,
  createStoredAuthority,
  openStoredAuthority,
  prepareRotation,
  readStoredAuthority,
} from '../../src/intercept/stored-authority.ts'
import { testdir } from '../fixtures/testdir.ts'

const now = Date.UTC(2026, 0, 5, 10)
const dayMs = 86_400_000
const certificatesIn = (text: string) => text.match(/-----BEGIN CERTIFICATE-----/g)?.length

t.test('the first start makes an authority, and later ones find it', async t => {
  const folder = join(testdir(t), 'data')
  t.equal(await readStoredAuthority(folder), undefined)
  const made = await openStoredAuthority(folder, now)
  const found = await openStoredAuthority(folder, now + dayMs)
  t.equal(found.bundle, made.bundle)
  t.equal(statSync(authorityFile(folder)).mode & 0o777, 0o600)
  t.strictSame(readdirSync(folder), ['ca.key'])
})

t.test('the authority signs leafs for ten years, and no further authorities', async t => {
  const { certificate, bundle, chain, constraints } = await openStoredAuthority(testdir(t), now)
  t.ok(certificate.ca)
  t.match(certificate.subject, /^CN=agent-gateway CA 2026-01-05 [0-9a-f]{8}$/)
  t.equal(certificate.issuer, certificate.subject)
  t.ok(certificate.verify(certificate.publicKey))
  t.equal(certificate.validFromDate.getTime(), now - dayMs)
  t.equal(certificate.validToDate.getTime(), now + 3_650 * dayMs)
  t.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
  t.equal(certificatesIn(bundle), 1)
  t.notMatch(bundle, 'PRIVATE')
  t.equal(chain, '', 'a root is not sent')
  t.equal(constraints, undefined)
})

t.test('processes that start at once get one authority', async t => {
  const folder = testdir(t)
  const module = new URL('../../src/intercept/stored-authority.ts', import.meta.url).href
  const script = `
    const { openStoredAuthority } = await import(${JSON.stringify(module)})
    console.log((await openStoredAuthority(${JSON.stringify(folder)}, ${now})).certificate.fingerprint256)`
  const run = async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [output] = await Promise.all([child.stdout.setEncoding('utf8').toArray(), once(child, 'close')])
    return output.join('')
  }
  const printed = await Promise.all([run(), run(), run(), run()])
  t.match(printed[0], /^[0-9A-F:]{95}\n$/)
  t.equal(new Set(printed).size, 1)
  t.strictSame(readdirSync(folder), ['ca.key'], 'no draft is left')
})

t.test('a file that others can read is refused', async t => {
  const folder = testdir(t)
  await openStoredAuthority(folder, now)
  chmodSync(authorityFile(folder), 0o644)
  await t.rejects(openStoredAuthority(folder, now), { name: 'StartupError', message: /chmod 600/ })
})

t.test('a damaged file is refused and kept', async t => {
  const folder = testdir(t)
  writeFileSync(authorityFile(folder), 'no PEM', { mode: 0o600 })
  await t.rejects(openStoredAuthority(folder, now), StartupError)
  t.equal(readFileSync(authorityFile(folder), 'utf8'), 'no PEM')
})

t.test('an authority is created once', async t => {
  const folder = testdir(t)
  const { bundle } = await createStoredAuthority(folder, now, undefined)
  await t.rejects(createStoredAuthority(folder, now, undefined), { message: /ca rotate/ })
  t.equal((await openStoredAuthority(folder, now)).bundle, bundle)
})

t.test('constraints are in the certificate', async t => {
  const folder = testdir(t)
  await createStoredAuthority(folder, now, constraintsOf('example.com', '10.0.0.0/8'))
  const { constraints, permits } = await openStoredAuthority(folder, now)
  t.strictSame(constraints && permittedBy(constraints), ['example.com', '10.0.0.0/8'])
  t.ok(permits('api.example.com'))
  t.ok(permits('10.1.1.1'))
  t.notOk(permits('example.org'))
  t.notOk(permits('127.0.0.1'))
})

t.test('constraints on names alone permit no address', async t => {
  const folder = testdir(t)
  await createStoredAuthority(folder, now, constraintsOf('example.com'))
  const { permits } = await openStoredAuthority(folder, now)
  for (const address of ['10.1.1.1', '::1', '2001:db8::1']) t.notOk(permits(address), address)
})

t.test('a rotation puts a new authority before the old certificate', async t => {
  const folder = testdir(t)
  const old = await openStoredAuthority(folder, now)
  const renewed = await rotate(folder, now, true)
  t.not(renewed.certificate.fingerprint256, old.certificate.fingerprint256)
  t.not(renewed.certificate.subject, old.certificate.subject)
  t.equal(renewed.bundle, `${renewed.certificate}${old.certificate}`)
  t.equal(renewed.chain, '')
  t.equal((await openStoredAuthority(folder, now)).bundle, renewed.bundle)
  t.equal(statSync(authorityFile(folder)).mode & 0o777, 0o600)
})

t.test('a second rotation drops the certificate of before the first', async t => {
  const folder = testdir(t)
  await openStoredAuthority(folder, now)
  const second = await rotate(folder, now, true)
  const third = await rotate(folder, now, true)
  t.equal(third.bundle, `${third.certificate}${second.certificate}`)
})

t.test('a rotation drops the old certificate on request, or when it has expired', async t => {
  const folder = testdir(t)
  await openStoredAuthority(folder, now)
  t.equal(certificatesIn((await rotate(folder, now, false)).bundle), 1)
  const late = now + 3_651 * dayMs
  t.equal(certificatesIn((await rotate(folder, late, true)).bundle), 1)
})

t.test('a prepared authority is nowhere until it is stored', async t => {
  const folder = testdir(t)
  const old = await openStoredAuthority(folder, now)
  const prepared = await prepareRotation(folder, now, { old, constraints: undefined, keepsOld: true })
  t.equal((await openStoredAuthority(folder, now)).bundle, old.bundle)
  await prepared.store()
  t.equal((await openStoredAuthority(folder, now)).bundle, prepared.authority.bundle)
})

t.test('certificates state times of 2050 and later in the form for them', async t => {
  const { certificate } = await openStoredAuthority(testdir(t), Date.UTC(2049, 11, 31))
  t.equal(new X509Certificate(certificate.raw).validToDate.getTime(), Date.UTC(2049, 11, 31) + 3_650 * dayMs)
})

async function rotate(folder: string, now: number, keepsOld: boolean) {
  const old = await openStoredAuthority(folder, now)
  const { authority, store } = await prepareRotation(folder, now, { old, constraints: undefined, keepsOld })
  await store()
  return authority
}

function constraintsOf(...permit: string[]): NameConstraints {
  const parsed = parsePermitted(permit)
  if (parsed === undefined || 'wrong' in parsed) throw new TypeError('no constraints')
  return parsed
}
