/** The S3 client of AWS with placeholder keys, through the forward proxy; AWS's own signer checks what arrives. Threat T83. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent } from 'node:https'
import { Readable } from 'node:stream'
import { Sha256 } from '@aws-crypto/sha256-js'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { SignatureV4 } from '@smithy/signature-v4'
import t from 'tap'
import { authorityOf, startForward } from '../fixtures/forward.ts'
import { eventually } from '../fixtures/gateway.ts'
import { type Seen, secureCaFile, secureName, startSecureOrigin } from '../fixtures/origin.ts'

const keys = { accessKeyId: 'AKIAREAL', secretAccessKey: 'the-real-secret-key', sessionToken: 'the-session-token' }
const region = 'eu-central-1'
const origin = await startSecureOrigin(t, answerS3)
const endpoint = `https://${secureName}:${origin.port}`

function answerS3(req: IncomingMessage, res: ServerResponse): void {
  const { pathname, searchParams } = new URL(req.url ?? '', endpoint)
  const tags: Readonly<Record<string, string>> = {
    uploads: '<InitiateMultipartUploadResult><UploadId>one</UploadId></InitiateMultipartUploadResult>',
    uploadId: '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>',
    'list-type': '<ListBucketResult><KeyCount>1</KeyCount><Contents><Key>a key</Key></Contents></ListBucketResult>',
  }
  const tag = Object.keys(tags).find(name => searchParams.has(name) && req.method !== 'PUT')
  const content = req.method === 'GET' ? `content of ${decodeURIComponent(pathname)}` : ''
  req.once('end', () => res.setHeader('ETag', '"etag"').end(tag === undefined ? content : tags[tag]))
}

const gateway = await startForward(t, {
  lookup: async () => ['127.0.0.1'],
  env: {
    KEYS: JSON.stringify({
      ...{ AccessKeyId: keys.accessKeyId, SecretAccessKey: keys.secretAccessKey, SessionToken: keys.sessionToken },
    }),
  },
  config: {
    Proxy: { CaFile: secureCaFile },
    Secrets: [{ Name: 'aws', FromEnv: 'KEYS' }],
    Credentials: [{ Name: 'aws', Type: 'Aws', Secret: 'aws', Services: ['s3'], Regions: [region] }],
    Upstreams: [{ Host: `${secureName}:${origin.port}`, Credential: 'aws' }],
  },
})
await gateway.policy({ name: 'held', default: 'Hitl' })

/** The client as an agent has it: it knows a proxy, an authority, and keys that are good for nothing. */
async function clientOf(more: Readonly<Record<string, unknown>> = {}): Promise<S3Client> {
  const { token } = await gateway.agent(more)
  const proxy = `http://agent:${token}@127.0.0.1:${gateway.forwardPort}`
  const client = new S3Client({
    ...{ region, endpoint, forcePathStyle: true, maxAttempts: 1 },
    credentials: { accessKeyId: 'AKIAPLACEHOLDER', secretAccessKey: 'placeholder' },
    requestHandler: {
      httpsAgent: new Agent({ proxyEnv: { HTTPS_PROXY: proxy }, ca: authorityOf(gateway), keepAlive: true }),
    },
  })
  t.teardown(() => client.destroy())
  return client
}
const client = await clientOf()
const place = { Bucket: 'bucket', Key: 'a folder/ü +~(1).txt' }

/** Whether a request is signed with the real keys, by the signer of AWS. */
async function isSigned({ method, target, rawHeaders, headers, sha256 }: Seen): Promise<boolean> {
  const { pathname, searchParams } = new URL(target, endpoint)
  const [, names = ''] = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '') ?? []
  const pairs = Array.from({ length: rawHeaders.length / 2 }, (_, i) => rawHeaders.slice(2 * i, 2 * i + 2))
  const isNamed = ([name = '']: readonly string[]) => names.split(';').includes(name.toLowerCase())
  const signer = new SignatureV4({
    ...{ credentials: keys, region, service: 's3', sha256: Sha256, uriEscapePath: false, applyChecksum: false },
  })
  const time = String(headers['x-amz-date']).replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')
  const request = {
    ...{ method, protocol: 'https:', hostname: secureName, path: pathname },
    query: Object.fromEntries(searchParams),
    headers: Object.fromEntries(pairs.filter(isNamed)),
  }
  const { headers: right } = await signer.sign(request, { signingDate: new Date(time) })
  const digest = String(headers['x-amz-content-sha256'])
  const isDigestRight = !/^[0-9a-f]{64}$/.test(digest) || digest === (sha256 || createHash('sha256').digest('hex'))
  return right['authorization'] === headers.authorization && isDigestRight
}

/** Requests since the last look that the keys of the gateway have not signed. */
async function unsigned(): Promise<readonly string[]> {
  const found: string[] = []
  for (const seen of origin.seen.splice(0)) if (!(await isSigned(seen))) found.push(`${seen.method} ${seen.target}`)
  return found
}

t.test('objects are read and listed, whatever stands in their names', async t => {
  const { Body } = await client.send(new GetObjectCommand(place))
  t.equal(await Body?.transformToString(), `content of /bucket/${place.Key}`)
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: 'bucket', Prefix: 'a b&c=d/é*' }))
  t.equal(Contents?.[0]?.Key, 'a key')
  t.strictSame(await unsigned(), [])
})

t.test('a text is written whole, and a stream without being held', async t => {
  await client.send(new PutObjectCommand({ ...place, Body: 'a text' }))
  t.equal(origin.seen.at(-1)?.body.toString(), 'a text')
  const ContentLength = 300_000
  const Body = Readable.from([Buffer.alloc(200_000, 1), Buffer.alloc(100_000, 2)])
  await client.send(new PutObjectCommand({ ...place, Body, ContentLength }))
  t.match(origin.seen.at(-1)?.headers, { 'x-amz-decoded-content-length': String(ContentLength) })
  t.strictSame(await unsigned(), [])
})

t.test('a large object is written in parts', async t => {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(place))
  t.equal(UploadId, 'one')
  const part = { ...place, UploadId, PartNumber: 1 }
  const { ETag } = await client.send(new UploadPartCommand({ ...part, Body: Buffer.alloc(100_000, 'x') }))
  const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] }
  const whole = await client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload }))
  t.equal(whole.ETag, '"whole"')
  t.equal(origin.seen.length, 3)
  t.strictSame(await unsigned(), [])
})

t.test('what waited for a verdict is signed when it is sent', async t => {
  const careful = await clientOf({ policyName: 'held' })
  const written = careful.send(new PutObjectCommand({ ...place, Body: 'reviewed' }))
  const { id } = await eventually(
    async () => JSON.parse((await gateway.manage('GET', '/hitl')).text)[0] ?? {},
    found => found.id !== undefined,
  )
  t.equal(origin.seen.length, 0)
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`)).status, 200)
  t.equal((await written).ETag, '"etag"')
  t.equal(origin.seen.at(-1)?.body.toString(), 'reviewed')
  t.strictSame(await unsigned(), [])
})
