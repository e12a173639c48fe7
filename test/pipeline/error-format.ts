import t from 'tap'
import { errorFormatOf } from '../../src/pipeline/error-format.ts'

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
  ['no url', undefined],
]

for (const [url, format] of cases) {
  t.test(`${url} has errors of the kind ${format}`, async t => {
    t.equal(errorFormatOf(url), format)
  })
}
