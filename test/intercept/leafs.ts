import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SecureContext } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Authority, readAuthority } from '../../src/intercept/authority.ts'
import { createLeafs, type LeafParts } from '../../src/intercept/leafs.ts'
import { createStoredAuthority, openStoredAuthority } from '../../src/intercept/stored-authority.ts'
import { createClock } from '../fixtures/clock.ts'
import { testdir } from '../fixtures/testdir.ts'
import { meet } from '../fixtures/tls-client.ts'

const dayMs = 86_400_000
const ticketKeys = Buffer.alloc(48, 7)

async function open(t: Test, { authority, ...others }: Partial<LeafParts> = {}) {
  // Clients that look at a leaf have the clock of the system.
  const clock = createClock(Math.floor(Date.now() / 1_000) * 1_000)
  const used = authority ?? (await openStoredAuthority(testdir(t), clock.now()))
  return { clock, authority: used, leafs: await createLeafs({ authority: used, clock, ticketKeys, ...others }) }
}

t.test('a client that trusts the authority accepts the leaf of a host', async t => {
  const { leafs, authority } = await open(t)
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.example.com`
  for (const host of [
    'example.com',
    'a_b.example.com',
    'xn--nxasmq6b.example',
    '127.0.0.1',
    '::1',
    '2001:db8::1',
    long,
  ]) {
    const { leaf, protocol, key } = await meet(t, await leafs.contextFor(host, 'bot'), { ca: authority.bundle, host })
    t.equal(protocol, 'TLSv1.3', host)
    t.match(key, { name: 'X25519' })
    t.equal(leaf.subject, undefined)
    t.notOk(leaf.ca)
    t.strictSame(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1'])
  }
})

t.test('a client that does not trust it, or asks for another host, refuses the leaf', async t => {
  const { leafs, authority } = await open(t)
  const context = await leafs.contextFor('example.com', 'bot')
  const other = await openStoredAuthority(testdir(t), Date.now())
  await t.rejects(meet(t, context, { ca: other.bundle, host: 'example.com' }), {
    code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  })
  for (const host of ['example.org', 'www.example.com', '127.0.0.1']) {
    await t.rejects(meet(t, context, { ca: authority.bundle, host }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, host)
  }
})

t.test('TLS 1.2 is spoken, with forward secrecy', async t => {
  const { leafs, authority } = await open(t)
  const context = await leafs.contextFor('example.com', 'bot')
  const { protocol, key } = await meet(t, context, { ca: authority.bundle, host: 'example.com', maxVersion: 'TLSv1.2' })
  t.equal(protocol, 'TLSv1.2')
  t.match(key, { name: 'X25519' })
})

t.test('a session that one thread began is resumed by another', async t => {
  const { clock, authority, leafs } = await open(t)
  const others = await createLeafs({ authority, clock, ticketKeys })
  const asked = { ca: authority.bundle, host: 'example.com' }
  const { ticket } = await meet(t, await leafs.contextFor('example.com', 'bot'), asked)
  t.ok(ticket)
  const again = await meet(t, await others.contextFor('example.com', 'bot'), { ...asked, session: ticket! })
  t.ok(again.resumed)
})

t.test('a leaf holds from a day ago for 7 days on, and has a serial number of 16 bytes', async t => {
  const { clock, authority, leafs } = await open(t)
  const serials = new Set<string>()
  for (const host of ['a.example', 'b.example', 'c.example']) {
    const { leaf } = await meet(t, await leafs.contextFor(host, 'bot'), { ca: authority.bundle, host })
    t.equal(leaf.validFromDate.getTime(), clock.now() - dayMs)
    t.equal(leaf.validToDate.getTime(), clock.now() + 7 * dayMs)
    t.match(leaf.serialNumber, /^[4-7][0-9A-F]{31}$/)
    serials.add(leaf.serialNumber)
  }
  t.equal(serials.size, 3)
})

t.test('all leafs have one key, which is another one than that of the authority', async t => {
  const { authority, leafs } = await open(t)
  const keys = new Set<string>()
  for (const host of ['a.example', 'b.example']) {
    const { leaf } = await meet(t, await leafs.contextFor(host, 'bot'), { ca: authority.bundle, host })
    keys.add(leaf.publicKey.export({ type: 'spki', format: 'pem' }).toString())
  }
  t.equal(keys.size, 1)
  t.notOk(keys.has(authority.certificate.publicKey.export({ type: 'spki', format: 'pem' }).toString()))
})

t.test('a context is made once, and answered without a wait after that', async t => {
  const { leafs } = await open(t)
  const [first, second] = await Promise.all([
    leafs.contextFor('example.com', 'bot'),
    leafs.contextFor('example.com', 'bot'),
  ])
  t.equal(first, second)
  t.equal(leafs.contextFor('example.com', 'bot'), first)
  t.equal(leafs.minted, 1)
})

t.test('a leaf is made again after 5 days, and when the clock was set back', async t => {
  const { clock, leafs } = await open(t)
  const first = await leafs.contextFor('example.com', 'bot')
  clock.advance(5 * dayMs - 1)
  t.equal(leafs.contextFor('example.com', 'bot'), first)
  clock.advance(1)
  const second = await leafs.contextFor('example.com', 'bot')
  t.not(second, first)
  clock.jump(-dayMs)
  t.not(await leafs.contextFor('example.com', 'bot'), second)
  t.equal(leafs.minted, 3)
})

t.test('no leaf holds longer than the authority', async t => {
  const { clock, authority, leafs } = await open(t)
  clock.advance(3_648 * dayMs)
  const context = await leafs.contextFor('example.com', 'bot')
  // Its time is to come for the client of this test.
  await t.rejects(meet(t, context, { ca: authority.bundle, host: 'example.com' }), { code: 'CERT_NOT_YET_VALID' })
  const { leaf } = await seen(t, context)
  t.equal(leaf.validToDate.getTime(), authority.certificate.validToDate.getTime())
})

t.test('as many contexts are kept as may be; the one used least recently goes first', async t => {
  const { leafs } = await open(t, { maxContexts: 3 })
  const first = await leafs.contextFor('first.example', 'bot')
  for (const host of ['second.example', 'third.example']) await leafs.contextFor(host, 'bot')
  t.equal(leafs.contextFor('first.example', 'bot'), first)
  await leafs.contextFor('fourth.example', 'bot')
  t.equal(leafs.contextFor('first.example', 'bot'), first)
  t.equal(leafs.minted, 4)
  await leafs.contextFor('second.example', 'bot')
  t.equal(leafs.minted, 5, 'it had gone')
})

t.test('T73 an agent that calls host after host pushes out the contexts that were made for itself alone', async t => {
  const { leafs } = await open(t, { maxContexts: 10, maxContextsEach: 3 })
  const victims = await leafs.contextFor('victim.example', 'victim')
  const used = await leafs.contextFor('used.example', 'hostile')
  for (let host = 0; host < 20; host++) {
    await leafs.contextFor(`${host}.example`, 'hostile')
    t.equal(leafs.contextFor('used.example', 'hostile'), used, 'the one that it uses stays')
  }
  t.equal(leafs.contextFor('victim.example', 'victim'), victims)
  t.equal(leafs.minted, 22)
  await leafs.contextFor('17.example', 'victim')
  t.equal(leafs.minted, 23, 'all but the last two had gone')
  for (const host of ['18.example', '19.example']) await leafs.contextFor(host, 'victim')
  t.equal(leafs.minted, 23)
})

t.test('a context whose agent has no other leaves its share with it', async t => {
  const { clock, leafs } = await open(t, { maxContextsEach: 1 })
  const first = await leafs.contextFor('a.example', 'bot')
  clock.advance(6 * dayMs)
  t.not(await leafs.contextFor('a.example', 'other'), first, 'made again in the share of the other')
  await leafs.contextFor('b.example', 'bot')
  const again = leafs.contextFor('a.example', 'bot')
  t.notOk(again instanceof Promise, 'the first share has one place')
})

t.test('the authority of a company signs leafs: its name has several parts, and its key has no identifier', async t => {
  const authority = await readFixture(t, 'issuing')
  const root = fixture('root')
  const { leafs } = await open(t, { authority })
  for (const host of ['example.com', 'api.example.com', '127.0.0.1'])
    await t.resolves(meet(t, await leafs.contextFor(host, 'bot'), { ca: root, host }), host)
  for (const host of ['example.org', '10.0.0.1']) {
    t.notOk(authority.permits(host))
    await t.rejects(
      meet(t, await leafs.contextFor(host, 'bot'), { ca: root, host }),
      { message: /permitted subtree violation/ },
      host,
    )
  }
})

t.test('an authority with an RSA key signs leafs', async t => {
  const authority = await readFixture(t, 'rsa')
  const { leafs } = await open(t, { authority })
  const { leaf } = await meet(t, await leafs.contextFor('example.com', 'bot'), {
    ca: authority.bundle,
    host: 'example.com',
  })
  t.equal(leaf.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
})

t.test('what the constraints of a stored authority forbid, clients refuse', async t => {
  const folder = testdir(t)
  const constraints = {
    permitted: { names: ['example.com'], ranges: [] },
    excluded: { names: [], ranges: ['0.0.0.0/0', '::/0'] },
  }
  const authority = await createStoredAuthority(folder, Date.now(), constraints)
  const { leafs } = await open(t, { authority })
  await t.resolves(
    meet(t, await leafs.contextFor('api.example.com', 'bot'), { ca: authority.bundle, host: 'api.example.com' }),
  )
  for (const host of ['example.org', '127.0.0.1', '::1']) {
    const refused = meet(t, await leafs.contextFor(host, 'bot'), { ca: authority.bundle, host })
    await t.rejects(refused, { message: /(permitted|excluded) subtree violation/ }, host)
  }
})

const seen = (t: Test, context: SecureContext) => meet(t, context, { ca: '', host: 'example.com', checks: false })

const path = (name: string) => fileURLToPath(new URL(`../fixtures/ca/${name}.pem`, import.meta.url))
const fixture = (name: string) => readFileSync(path(name), 'utf8')

function readFixture(t: Test, name: string): Promise<Authority> {
  // The key in the repository is as readable as its other files.
  const folder = testdir(t, { 'key.pem': fixture(`${name}-key`) })
  chmodSync(join(folder, 'key.pem'), 0o600)
  return readAuthority({ certificateFile: path(name), keyFile: join(folder, 'key.pem') })
}
