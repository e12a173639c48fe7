import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { describeAuthority, readAuthority } from '../../src/intercept/authority.ts'
import { testdir } from '../fixtures/testdir.ts'

const fixture = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../fixtures/${name}.pem`, import.meta.url)), 'utf8')

/** The authority of two files with this content. */
function read(t: Test, certificates: string, key: string, mode = 0o600) {
  const folder = testdir(t, { 'ca.pem': certificates, 'key.pem': key })
  chmodSync(join(folder, 'key.pem'), mode)
  return readAuthority({ certificateFile: join(folder, 'ca.pem'), keyFile: join(folder, 'key.pem') })
}

const [root, issuing, issuingKey] = [fixture('ca/root'), fixture('ca/issuing'), fixture('ca/issuing-key')]

t.test('an issuing authority is sent behind leafs, and its root is trusted but not sent', async t => {
  const { bundle, chain, certificate, constraints } = await read(t, `issued by us\n${issuing}and\n${root}`, issuingKey)
  t.match(certificate.subject, 'CN=Example Issuing CA')
  t.equal(chain, String(certificate))
  t.equal(bundle, issuing + root)
  t.strictSame(constraints?.permitted, { names: ['example.com'], ranges: ['127.0.0.0/8'] })
})

t.test('a certificate that is no part of the chain is trusted but not sent', async t => {
  const { bundle, chain } = await read(t, issuing + fixture('ca/rsa') + root, issuingKey)
  t.equal(chain, issuing)
  t.equal(bundle, issuing + fixture('ca/rsa') + root)
})

t.test('an RSA key may sign', async t => {
  const authority = await read(t, fixture('ca/rsa'), fixture('ca/rsa-key'))
  t.equal(authority.chain, '')
  t.match(describeAuthority(authority), /^SHA-256 [0-9A-F:]{95}, valid until \d{4}-.*Z$/)
})

t.test('constraints are described', async t => {
  t.match(describeAuthority(await read(t, issuing, issuingKey)), /, limited to some hosts$/)
})

t.test('a key that others can read is refused', async t => {
  await t.rejects(read(t, issuing, issuingKey, 0o644), { name: 'StartupError', message: /chmod 600/ })
})

t.test('what cannot be used is refused, with its setting and what must be there', async t => {
  const certificate = /^ForwardProxy:Ca:CertificateFile: .*ca\.pem/
  const key = /^ForwardProxy:Ca:KeyFile: .*key\.pem/
  const cases: readonly (readonly [string, string, string, RegExp, RegExp])[] = [
    ['no certificate', 'none', issuingKey, certificate, /contains no certificate/],
    ['a damaged certificate', root.replaceAll('M', 'A'), issuingKey, certificate, /cannot be read/],
    ['no key', issuing, 'none', key, /contains no private key/],
    ['the key of another', issuing, fixture('ca/rsa-key'), key, /does not belong/],
    ['a certificate of a server', fixture('ca/server'), fixture('ca/server-key'), certificate, /CA:TRUE/],
    ['a key of a curve that clients lack', fixture('ca/p521'), fixture('ca/p521-key'), key, /P-256 or P-384/],
  ]
  for (const [name, pem, keyText, setting, problem] of cases) {
    const error = await read(t, pem, keyText).then(
      () => undefined,
      error => error,
    )
    t.equal(error?.name, 'StartupError', name)
    t.match(error?.message, setting, name)
    t.match(error?.message, problem, name)
  }
})

t.test('files that are not there are named', async t => {
  const folder = testdir(t, { 'ca.pem': root })
  const certificateFile = join(folder, 'ca.pem')
  await t.rejects(readAuthority({ certificateFile: join(folder, 'none'), keyFile: 'none' }), {
    message: /CertificateFile: .*none cannot be read \(ENOENT\)/,
  })
  await t.rejects(readAuthority({ certificateFile, keyFile: join(folder, 'none') }), {
    message: /KeyFile: .*none does not exist/,
  })
})
