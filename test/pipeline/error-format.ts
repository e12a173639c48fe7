import t from 'tap'
import { errorFormatOf } from '../../src/pipeline/answer.ts'

const cases: readonly (readonly [string, string | undefined])[] = [
  ['https://generativelanguage.googleapis.com/v1beta/models/m:generateContent', 'google'],
  ['https://SLACK.com/api/chat.postMessage', 'slack'],
  ['https://hooks.slack.com:443/services/x', 'slack'],
  ['https://notslack.com/api', undefined],
  ['https://example.com/?x=slack.com', undefined],
  ['https://registry.npmjs.org/tap', 'string'],
  ['http://127.0.0.1:11434/api/chat', 'string'],
  ['http://10.0.0.1/v1beta/models/m:generateContent?alt=sse', 'google'],
  ['https://api.openai.com/v1/chat/completions', undefined],
  ['https://github.com/a/b.git/info/refs?service=git-upload-pack', 'text'],
  ['https://github.com/a/b.git/git-receive-pack', 'text'],
  ['https://github.com/a/git-receive-pack/b', undefined],
  ['https://ghcr.io/v2/', 'registry'],
  ['https://ghcr.io/v2/a/b/manifests/latest', 'registry'],
  ['https://ghcr.io/v2/a/blobs/uploads/?digest=sha256:00', 'registry'],
  ['https://api.example.com/v2/orders', undefined],
  ['no url', undefined],
]

for (const [url, format] of cases) {
  t.test(`${url} has errors of the kind ${format}`, async t => {
    t.equal(errorFormatOf(url, []), format)
  })
}

const signed = (service: string, type = 'application/json') => [
  ...['Authorization', `AWS4-HMAC-SHA256 Credential=AKID/20260105/us-east-1/${service}/aws4_request, Signature=00`],
  ...['Content-Type', type],
]
const form = 'application/x-www-form-urlencoded; charset=utf-8'

t.test('a client of AWS has errors of its service', async t => {
  t.equal(errorFormatOf('https://minio.example.com/bucket/key', signed('s3', form)), 's3')
  t.equal(errorFormatOf('https://sts.amazonaws.com/', signed('sts', form)), 'query')
  t.equal(errorFormatOf('https://dynamodb.us-east-1.amazonaws.com/', signed('dynamodb')), undefined)
  t.equal(errorFormatOf('https://s3.amazonaws.com/bucket/key', ['Authorization', 'Bearer AWS4']), undefined)
})
