/** The S3 client of AWS with placeholder keys, through the forward proxy; AWS's own signer checks what arrives. Threat T83. */
import { Agent } from 'node:https'
import { Readable } from 'node:stream'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import t from 'tap'
import { authorityOf, startForward } from '../fixtures/forward.ts'
import { eventually } from '../fixtures/gateway.ts'
import { secureCaFile } from '../fixtures/origin.ts'
import { region, secretKeys, startS3 } from './fixtures/s3.ts'

const { origin, objects, unsigned } = await startS3(t)
const endpoint = origin.url

const gateway = await startForward(t, {
  lookup: async () => ['127.0.0.1'],
  env: { KEYS: secretKeys },
  config: {
    Proxy: { CaFile: secureCaFile },
    Secrets: [{ Name: 'aws', FromEnv: 'KEYS' }],
    Credentials: [{ Name: 'aws', Type: 'Aws', Secret: 'aws', Services: ['s3'], Regions: [region] }],
    Upstreams: [{ Host: new URL(endpoint).host, Credential: 'aws' }],
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
const path = `/bucket/${place.Key}`

t.test('objects are read and listed, whatever stands in their names', async t => {
  const { Body } = await client.send(new GetObjectCommand(place))
  t.equal(await Body?.transformToString(), `content of /bucket/${place.Key}`)
  const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: 'bucket', Prefix: 'a b&c=d/é*' }))
  t.equal(Contents?.[0]?.Key, 'a key')
  t.strictSame(unsigned(), [])
})

t.test('a text is written whole, and a stream without being held', async t => {
  await client.send(new PutObjectCommand({ ...place, Body: 'a text' }))
  t.equal(String(objects.get(path)), 'a text')
  const ContentLength = 300_000
  const Body = Readable.from([Buffer.alloc(200_000, 1), Buffer.alloc(100_000, 2)])
  await client.send(new PutObjectCommand({ ...place, Body, ContentLength }))
  t.match(origin.seen.at(-1)?.headers, { 'x-amz-decoded-content-length': String(ContentLength) })
  t.equal(objects.get(path)?.length, ContentLength)
  t.strictSame(unsigned(), [])
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
  t.strictSame(unsigned(), [])
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
  t.equal(String(objects.get(path)), 'reviewed')
  t.strictSame(unsigned(), [])
})
