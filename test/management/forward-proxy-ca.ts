/** The authority over the API. Threat T75. */
import { X509Certificate } from 'node:crypto'
import { chmodSync, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type GatewaySetup, startBare, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'

const config = { ForwardProxy: { Enabled: true, Port: 0 } }
const path = '/forward-proxy/ca.pem'
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/ca/${name}.pem`, import.meta.url))

/** With a database the authority has to be configured: these are about the one in the data folder. */
const start = (t: Test, setup: GatewaySetup = {}) =>
  startGateway(t, { config, alone: 'each gateway would have an authority of its own', ...setup })

/** The certificates that programs are to trust. */
async function bundle({ manage }: TestGateway): Promise<readonly X509Certificate[]> {
  const { status, text } = await manage('GET', path, undefined, null)
  if (status !== 200) throw new Error(text)
  return (text.match(/-----BEGIN[^-]*-----[^-]*-----END[^-]*-----/g) ?? []).map(one => new X509Certificate(one))
}

/** Fingerprints of the authorities on record, newest first. */
async function recorded({ manage }: TestGateway) {
  const { text } = await manage('GET', '/audit?action=ca.use')
  return JSON.parse(text).items as { subject: string; actor: string; details: object }[]
}

t.test('without a forward proxy there is no authority', async t => {
  const gateway = await startGateway(t)
  t.equal((await gateway.manage('GET', path, undefined, null)).status, 404)
  t.equal((await gateway.manage('POST', '/forward-proxy/ca/rotate')).status, 404)
})

t.test('anybody can read the certificate, and nobody its key', async t => {
  const gateway = await start(t)
  const answer = await gateway.manage('GET', path, undefined, null)
  t.equal(answer.headers.get('content-type'), 'application/x-pem-file')
  t.notMatch(answer.text, 'PRIVATE')
  const [certificate, ...others] = await bundle(gateway)
  t.ok(certificate?.ca)
  t.equal(others.length, 0)
})

t.test('the same authority is used after a restart, and is on record once', async t => {
  const first = await start(t)
  const [certificate] = await bundle(first)
  await first.close()
  const second = await start(t, { directory: first.directory })
  t.equal((await bundle(second))[0]?.fingerprint256, certificate?.fingerprint256)
  t.match(await recorded(second), [{ subject: certificate?.fingerprint256, actor: 'gateway' }])
  t.equal((await recorded(second)).length, 1)
})

t.test('a rotation puts a new one before the old, and is on record with who did it', async t => {
  const gateway = await start(t)
  const [old] = await bundle(gateway)
  const { status, text } = await gateway.manage('POST', '/forward-proxy/ca/rotate')
  t.equal(status, 200)
  const found = await bundle(gateway)
  t.strictSame(
    found.map(({ fingerprint256 }) => fingerprint256),
    [JSON.parse(text).fingerprint, old?.fingerprint256],
  )
  const [entry] = await recorded(gateway)
  t.match(entry, { subject: found[0]?.fingerprint256, details: { validUntil: JSON.parse(text).validUntil } })
  t.not(entry?.actor, 'gateway')
})

t.test('a rotation may limit the hosts, keeps the limits of before, and may remove them', async t => {
  const gateway = await start(t)
  const rotate = async (body?: object) =>
    JSON.parse((await gateway.manage('POST', '/forward-proxy/ca/rotate', body)).text)
  t.match(await rotate({ permit: ['Example.com', '10.0.0.0/8'] }), { permitted: ['example.com', '10.0.0.0/8'] })
  t.match(await rotate(), { permitted: ['example.com', '10.0.0.0/8'] })
  t.match(await rotate({ permit: [], keepOld: false }), { permitted: null })
  t.equal((await bundle(gateway)).length, 1)
})

t.test('what is neither a domain nor an address is refused', async t => {
  const gateway = await start(t)
  for (const permit of [['https://example.com'], [''], 'example.com', Array(101).fill('example.com')]) {
    const { status, text } = await gateway.manage('POST', '/forward-proxy/ca/rotate', { permit })
    t.match({ status, text }, { status: 400, text: /"invalid_body"/ }, String(permit))
  }
  t.equal((await bundle(gateway)).length, 1)
})

t.test('only an admin may rotate', async t => {
  const gateway = await start(t)
  const reviewer = await gateway.agent({ name: 'ada', roles: ['reviewer', 'auditor'] })
  t.equal((await gateway.manage('POST', '/forward-proxy/ca/rotate', undefined, reviewer.token)).status, 403)
  t.equal((await gateway.manage('POST', '/forward-proxy/ca/rotate', undefined, null)).status, 401)
  t.equal((await bundle(gateway)).length, 1)
})

/** A folder with the files of an authority. */
function configured(t: Test, name: string) {
  const directory = testdir(t, { policies: {} })
  const files = { CertificateFile: 'ca.pem', KeyFile: 'ca-key.pem' }
  const put = (other: string) => {
    copyFileSync(fixture(other), join(directory, 'ca.pem'))
    copyFileSync(fixture(`${other}-key`), join(directory, 'ca-key.pem'))
    chmodSync(join(directory, 'ca-key.pem'), 0o600)
  }
  put(name)
  return { directory, put, config: { ForwardProxy: { ...config.ForwardProxy, Ca: files } } }
}

t.test('a configured authority is rotated in its files', async t => {
  const { put, ...setup } = configured(t, 'issuing')
  const gateway = await start(t, setup)
  t.match((await bundle(gateway))[0]?.subject, 'CN=Example Issuing CA')
  t.match(await gateway.manage('POST', '/forward-proxy/ca/rotate'), { status: 409, text: /SIGHUP/ })
  put('rsa')
  t.ok(await gateway.gateway.reload())
  t.equal((await bundle(gateway))[0]?.subject, 'CN=RSA Root')
  t.equal((await recorded(gateway)).length, 2)
})

t.test('files that cannot be used leave the authority of before in use', async t => {
  const { put, ...setup } = configured(t, 'issuing')
  const gateway = await start(t, setup)
  put('server')
  t.notOk(await gateway.gateway.reload())
  t.match((await bundle(gateway))[0]?.subject, 'CN=Example Issuing CA')
  t.match(
    gateway.log.filter(({ level }) => level === 'error'),
    [{ message: /authority could not be reloaded/ }],
  )
  t.equal((await recorded(gateway)).length, 1)
})

t.test('the start block names the authority', async t => {
  const { gateway } = await startBare(t, { config, alone: 'each gateway would have an authority of its own' })
  const row = gateway.summary.find(([name]) => name === 'CA')
  t.match(row?.[1], /^SHA-256 [0-9A-F:]{95}, valid until /)
})

t.test('a key that others can read ends the start', async t => {
  const { put: _, ...setup } = configured(t, 'issuing')
  chmodSync(join(setup.directory, 'ca-key.pem'), 0o644)
  await t.rejects(start(t, setup), { name: 'StartupError', message: /chmod 600/ })
})
