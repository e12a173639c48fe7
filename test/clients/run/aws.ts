/**
 * The command line of AWS and boto3 on every road, with placeholder keys: AWS's own signer checks that the gateway has signed
 * what arrives with its own. `npm run test:clients` installs them and runs this.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { authorityOf, startForward } from '../../fixtures/forward.ts'
import { secureCaFile } from '../../fixtures/origin.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { region, secretKeys, startS3 } from '../fixtures/s3.ts'
import { python, pythonFolder, script } from './clients.ts'

const { origin, objects, unsigned } = await startS3(t)
const { host } = new URL(origin.url)
const gateway = await startForward(t, {
  lookup: async () => ['127.0.0.1'],
  env: { KEYS: secretKeys },
  config: {
    Proxy: { CaFile: secureCaFile },
    Security: { AgentAuth: { FallbackToAuthorization: true } },
    Hosts: [{ Host: 'localhost', Upstream: origin.url }],
    Secrets: [{ Name: 'aws', FromEnv: 'KEYS' }],
    Credentials: [{ Name: 'aws', Type: 'Aws', Secret: 'aws', Services: ['s3'], Regions: [region] }],
    Upstreams: [{ Host: host, Credential: 'aws' }],
  },
})
const { token, key } = await gateway.agent().then(async agent => {
  const made = await gateway.manage('POST', `/agents/${agent.id}/keys`, { name: 'aws' })
  return { token: agent.token, key: JSON.parse(made.text).key as string }
})
const directory = testdir(t)
const [file, authority] = [join(directory, 'large'), join(directory, 'authority.pem')]
const large = randomBytes(12 << 20)
writeFileSync(file, large)
writeFileSync(authority, authorityOf(gateway))
const digest = createHash('sha256').update(large).digest('hex')

const proxy = `http://agent:${token}@127.0.0.1:${gateway.forwardPort}`
const roads = {
  'the forward proxy': {
    endpoint: origin.url,
    env: { AWS_ACCESS_KEY_ID: 'AKIAPLACEHOLDER', HTTPS_PROXY: proxy, AWS_CA_BUNDLE: authority },
  },
  '/proxy': {
    endpoint: `http://127.0.0.1:${gateway.port}/proxy/https/${host}`,
    env: { AWS_ACCESS_KEY_ID: key },
  },
  'a virtual host': { endpoint: `http://localhost:${gateway.port}`, env: { AWS_ACCESS_KEY_ID: key } },
}

async function called(args: readonly string[], env: object): Promise<string> {
  const usual = { PATH: process.env['PATH'], HOME: directory, PYTHONPATH: pythonFolder, AWS_SECRET_ACCESS_KEY: 'none' }
  const child = spawn(python, args, { env: { ...usual, AWS_DEFAULT_REGION: region, AWS_MAX_ATTEMPTS: '1', ...env } })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  if ((await ended) !== 0) throw new Error(`${args.join(' ')}\n${out}${err}`)
  return out
}

for (const [road, { endpoint, env }] of Object.entries(roads)) {
  t.test(`the command line of AWS reads, writes and uploads in parts over ${road}`, async t => {
    const aws = (...args: readonly string[]) => called(['-m', 'awscli', '--endpoint-url', endpoint, ...args], env)
    t.match(await aws('s3', 'ls', 's3://bucket/'), /a key/)
    t.equal(await aws('s3', 'cp', 's3://bucket/a b', '-'), 'content of /bucket/a b')
    await aws('s3', 'cp', '--quiet', file, 's3://bucket/cli')
    t.ok(objects.get('/bucket/cli')?.equals(large))
    const back = join(directory, 'back')
    await aws('s3', 'cp', '--quiet', 's3://bucket/cli', back)
    t.ok(readFileSync(back).equals(large))
    t.ok(origin.seen.length > 6, 'in parts, and read in ranges')
    t.strictSame(unsigned(), [])
  })

  t.test(`boto3 reads, writes and uploads in parts over ${road}`, async t => {
    const printed = (await called([script('s3.py'), endpoint, file], env)).trim().split('\n')
    t.strictSame(printed.slice(0, 3), ['a text', 'a key', digest])
    t.ok(objects.get('/bucket/parts')?.equals(large))
    const kinds = new Set(origin.seen.map(({ headers }) => headers['x-amz-content-sha256']))
    // They do so over TLS alone.
    t.equal(kinds.has('STREAMING-UNSIGNED-PAYLOAD-TRAILER'), 'HTTPS_PROXY' in env)
    t.strictSame(unsigned(), [])
  })
}
