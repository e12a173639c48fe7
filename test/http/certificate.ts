import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { describeCertificate, readCertificate, readCurrentCertificate } from '../../src/http/certificate.ts'
import { testdir } from '../fixtures/testdir.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))

const directory = testdir(t, {})
for (const name of ['cert.pem', 'key.pem', 'renewed-cert.pem', 'renewed-key.pem']) {
  copyFileSync(fixture(name), join(directory, name))
  chmodSync(join(directory, name), name.endsWith('key.pem') ? 0o600 : 0o644)
}
writeFileSync(join(directory, 'nonsense.pem'), 'nonsense', { mode: 0o600 })
copyFileSync(fixture('key.pem'), join(directory, 'open.pem'))
chmodSync(join(directory, 'open.pem'), 0o644)

function read(CertificateFile: string, KeyFile: string, now = Date.now()) {
  const file = {
    path: 'gateway.yaml',
    text: JSON.stringify({ System: { Server: { Tls: { CertificateFile, KeyFile } } } }),
  }
  const loaded = loadConfig({ file, env: {} })
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  return readCurrentCertificate(loaded.config, directory, now)
}

t.test('a certificate and its key', async t => {
  const certificate = await read('cert.pem', 'key.pem')
  t.match(certificate, { cert: /BEGIN CERTIFICATE/, key: /BEGIN PRIVATE KEY/ })
  t.match(certificate && describeCertificate(certificate), /^DNS:idp\.test, valid until 2126-/)
  const loaded = loadConfig({ env: {} })
  t.equal('config' in loaded && (await readCertificate(loaded.config, directory)), undefined, 'none is configured')
})

t.test('a certificate that has expired is refused at the start', async t => {
  const later = Date.UTC(2127, 0)
  await t.rejects(read('cert.pem', 'key.pem', later), { message: /CertificateFile: the certificate expired on 2126-/ })
})

const cases: [string, string, RegExp][] = [
  ['none.pem', 'key.pem', /^System:Server:Tls:CertificateFile: \S+\/none\.pem cannot be read \(ENOENT\)\.$/],
  ['cert.pem', 'none.pem', /^System:Server:Tls:KeyFile: \S+\/none\.pem does not exist\.$/],
  ['cert.pem', 'open.pem', /^\S+\/open\.pem: others can read this secret\. Run: chmod 600 \S+\/open\.pem$/],
  ['nonsense.pem', 'key.pem', /CertificateFile: \S+\/nonsense\.pem contains no certificate in PEM form\.$/],
  [
    'cert.pem',
    'nonsense.pem',
    /KeyFile: \S+\/nonsense\.pem contains no private key in PEM form without a passphrase\.$/,
  ],
  [
    'cert.pem',
    'renewed-key.pem',
    /the key in \S+\/renewed-key\.pem does not belong to the certificate in \S+\/cert\.pem\.$/,
  ],
]

for (const [certificate, key, message] of cases) {
  t.test(`${certificate} with ${key} is refused in one line`, async t => {
    await t.rejects(read(certificate, key), { name: 'StartupError', message })
  })
}

t.test('a chain that is damaged behind the first certificate is refused', async t => {
  const chain = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  writeFileSync(join(directory, 'damaged.pem'), readFileSync(fixture('cert.pem'), 'utf8') + chain)
  await t.rejects(read('damaged.pem', 'key.pem'), { name: 'StartupError', message: /the chain is damaged or too weak/ })
})
