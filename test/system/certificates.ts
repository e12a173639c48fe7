/** Certificates as other programs verify them. Threat T75. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createLeafs } from '../../src/intercept/leafs.ts'
import { type NameConstraints, parsePermitted } from '../../src/intercept/name-constraints.ts'
import { createStoredAuthority } from '../../src/intercept/stored-authority.ts'
import { runPython } from '../fixtures/python.ts'
import { testdir } from '../fixtures/testdir.ts'
import { meet, serveTls } from '../fixtures/tls-client.ts'

const run = promisify(execFile)
const hosts = ['example.com', 'a_b.example.com', '127.0.0.1', '2001:db8::1']

async function open(t: Test, ...permit: string[]) {
  const constraints = parsePermitted(permit) as NameConstraints | undefined // The texts are right.
  const authority = await createStoredAuthority(testdir(t), Date.now(), constraints)
  const leafs = await createLeafs({ authority, clock: Date, ticketKeys: Buffer.alloc(48) })
  return { authority, leafs, bundle: join(testdir(t, { 'ca.pem': authority.bundle }), 'ca.pem') }
}

/** Verifies a leaf as OpenSSL does when it is strict. */
async function verify(t: Test, { authority, leafs, bundle }: Awaited<ReturnType<typeof open>>, host: string) {
  const { leaf } = await meet(t, await leafs.contextFor(host, 'test'), { ca: authority.bundle, host, checks: false })
  const file = join(testdir(t, { 'leaf.pem': String(leaf) }), 'leaf.pem')
  const asks = /^[\d.]+$|:/.test(host) ? '-verify_ip' : '-verify_hostname'
  const args = ['verify', '-x509_strict', '-check_ss_sig', '-purpose', 'sslserver', asks, host, '-CAfile', bundle, file]
  return (await run('openssl', args)).stdout
}

t.test('openssl verify accepts leafs with -x509_strict', async t => {
  const opened = await open(t)
  for (const host of hosts) t.match(await verify(t, opened, host), /leaf\.pem: OK\n$/, host)
})

t.test('openssl verify refuses leafs of hosts that the constraints do not permit', async t => {
  const opened = await open(t, 'example.com', '127.0.0.0/8')
  for (const host of ['api.example.com', '127.0.0.1']) t.match(await verify(t, opened, host), /OK\n$/, host)
  for (const host of ['example.org', '10.0.0.1', '::1'])
    await t.rejects(verify(t, opened, host), { message: /permitted subtree violation/ }, host)
})

t.test('Python accepts them with its strict flag', async t => {
  const { leafs, bundle } = await open(t)
  const code = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.verify_flags |= ssl.VERIFY_X509_STRICT
with socket.create_connection(('127.0.0.1', int(sys.argv[3]))) as plain:
  with context.wrap_socket(plain, server_hostname=sys.argv[2]) as secured:
    print(secured.version())`
  for (const host of hosts.filter(host => !host.includes('_'))) {
    const port = await serveTls(t, await leafs.contextFor(host, 'test'))
    t.equal(await runPython('ssl', code, { args: [bundle, host, String(port)] }), 'TLSv1.3\n', host)
  }
})

t.test('curl accepts them', async t => {
  const { leafs, bundle } = await open(t)
  const port = await serveTls(t, await leafs.contextFor('example.com', 'test'))
  const args = ['-sS', '--cacert', bundle, '--connect-to', `::127.0.0.1:${port}`, '-w', '%{http_code}']
  t.equal((await run('curl', [...args, 'https://example.com/'])).stdout, '204')
})
