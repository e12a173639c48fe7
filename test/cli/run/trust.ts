import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeTrust } from '../../../src/cli/run/trust.ts'
import { testdir } from '../../fixtures/testdir.ts'

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/ca/${name}.pem`, import.meta.url), 'utf8')
const subjects = (path: string) =>
  (readFileSync(path, 'utf8').match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? []).map(
    one => new X509Certificate(one).subject,
  )

t.test('the bundle has the authority, the roots that are trusted anyway, and what the caller added', async t => {
  const given = testdir(t, { 'added.pem': fixture('rsa'), 'extra.pem': fixture('p521') })
  const env = { SSL_CERT_FILE: join(given, 'added.pem'), NODE_EXTRA_CA_CERTS: join(given, 'extra.pem') }
  const files = await writeTrust(testdir(t), fixture('root'), env)
  const found = subjects(files.bundle)
  t.match(found[0], 'CN=Example Root')
  for (const name of ['CN=RSA Root', 'CN=P-521 Root']) t.ok(found.includes(name), name)
  t.ok(found.length > 50)
  t.strictSame(
    subjects(files.extra).map(text => text.replace(/.*\n/gs, '')),
    ['CN=Example Root', 'CN=P-521 Root'],
  )
})

t.test('each certificate is there once, and a file that is none is left out', async t => {
  const folder = testdir(t, { 'same.pem': fixture('root').replaceAll('\n', '\r\n'), text: 'none' })
  const env = {
    SSL_CERT_FILE: join(folder, 'same.pem'),
    CURL_CA_BUNDLE: folder,
    REQUESTS_CA_BUNDLE: join(folder, 'text'),
  }
  const { bundle } = await writeTrust(testdir(t), fixture('root'), { ...env, NODE_EXTRA_CA_CERTS: '/none' })
  t.equal(subjects(bundle).filter(name => name.includes('Example Root')).length, 1)
})

t.test('the store of Java is a PKCS#12 file with each certificate', async t => {
  const { bundle, javaStore } = await writeTrust(testdir(t), fixture('root'), {})
  const bytes = readFileSync(javaStore)
  t.equal(bytes[0], 0x30)
  for (const name of ['root']) t.ok(bytes.includes(new X509Certificate(fixture(name)).raw))
  const marks = bytes.toString('latin1').split(Buffer.from('6086480186f966adca7b0101', 'hex').toString('latin1'))
  t.equal(marks.length - 1, subjects(bundle).length)
})
