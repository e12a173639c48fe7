import t, { type Test } from 'tap'
import { call } from '../fixtures/call.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const gateway = await startGateway(t)
const policyName = await gateway.policy({
  name: 'closed',
  default: 'Deny',
  rules: [{ name: 'closed', effect: 'Deny', reason: 'Closed on Sundays', conditions: [] }],
})
const { token } = await gateway.agent({ policyName })
const upstreamOf = (host: string) => (host === '' ? origin.url : `https://${host}`)

async function refusalAt(t: Test, target: string, headers: readonly string[] = [`Bearer ${token}`]) {
  const [bearer] = headers
  const sent = bearer === undefined ? [] : ['Gateway-Authorization', bearer]
  const answer = await call({
    port: gateway.port,
    path: `/proxy/${target}`,
    headers: ['Host', 'gateway', 'Accept', '*/*', ...sent],
  })
  t.strictSame(origin.seen, [])
  return answer
}

const message = /Closed on Sundays/
const cases = [
  ['GitHub', 'api.github.com', '/user', { message, status: 403 }],
  ['OpenAI', '', '/v1/chat/completions', { error: { message, type: 'permission_error', code: 'policy_denied' } }],
  ['Anthropic', '', '/v1/messages', { type: 'error', error: { message, type: 'permission_error' } }],
  ['Gemini', '', '/v1beta/models/m:generateContent', { error: { message, code: 403, status: 'PERMISSION_DENIED' } }],
  ['Slack', 'slack.com', '/api/chat.postMessage', { ok: false, error: 'policy_denied', detail: message }],
  ['Ollama', '', '/api/chat', { error: message }],
  ['npm', 'registry.npmjs.org', '/tap', { error: message }],
] as const

for (const [client, host, path, body] of cases) {
  t.test(`the reason stands where the client of ${client} looks for it`, async t => {
    const { status, text } = await refusalAt(t, `${upstreamOf(host)}${path}`)
    t.equal(status, 403)
    t.match(JSON.parse(text), { code: 'policy_denied', detail: message, ...body })
  })
}

t.test('git gets text, which it prints', async t => {
  const { headers, text } = await refusalAt(t, `${origin.url}/a.git/info/refs?service=git-upload-pack`)
  t.match(headers['content-type'], /^text\/plain/)
  t.match(text, /^Denied by policy: .*Closed on Sundays/)
})

t.test('a 401 is JSON for an API of JSON, and the text of the specification for git and others', async t => {
  const textAt = async (path: string) => (await refusalAt(t, `${origin.url}${path}`, [])).text
  const { error } = JSON.parse(await textAt('/v1beta/models/m:generateContent'))
  t.match(error, { code: 401, status: 'UNAUTHENTICATED', message: /^Send the token as / })
  t.equal(await textAt('/a.git/git-receive-pack'), 'Missing or invalid authentication')
  t.equal(await textAt('/'), 'Missing or invalid authentication')
})

t.test('the reason phrase is the title, which pip shows', async t => {
  const answer = await gateway.proxy(token, `${origin.url}/simple/`)
  t.equal(answer.statusText, 'Denied by policy')
})
