/** Threat T62 of SECURITY.md: a redirect to another upstream does not take along the credentials that were meant for the first. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { withSystem } from '../fixtures/system.ts'

const run = promisify(execFile)
const when = (field: string, operator: string) => ({ field, operator, value: 'true' })
const secretive = {
  name: 'secretive',
  default: 'Allow',
  rules: [{ name: 'anonymous', effect: 'Deny', conditions: [when('input.headers.authorization', 'notExists')] }],
}
const gateway = await startGateway(t, { config: { Policies: [{ name: 'all', default: 'Allow' }, secretive] } })
const fallback = await startGateway(t, {
  config: { Policies: [{ name: 'all', default: 'Allow' }], Security: { AgentAuth: { FallbackToAuthorization: true } } },
})
const { token } = await gateway.agent({ policyName: 'all' })
const own = { Authorization: 'Bearer of-the-upstream', 'X-Api-Key': 'of-the-upstream', 'X-Other': 'kept' }
const third = await startOrigin(t, (req, res) => {
  if (req.url === '/back') res.writeHead(302, { Location: `${first.url}/end` }).end()
  else if (req.url === '/on') res.writeHead(302, { Location: '/end' }).end()
  else res.end('the third')
})
const first = await startOrigin(t, (req, res) => {
  if (req.url === '/end') res.end('the first')
  else res.writeHead(302, { Location: req.url === '/here' ? '/end' : `${third.url}${req.url}` }).end()
})
t.beforeEach(() => {
  first.seen.length = 0
  third.seen.length = 0
})

/** What each upstream got of the three fields, in order. */
const got = ({ seen }: typeof first) =>
  seen.map(({ headers }) => [headers.authorization, headers['x-api-key'], headers['x-other']])
const all = ['Bearer of-the-upstream', 'of-the-upstream', 'kept']
const none = [undefined, undefined, 'kept']

/** Clients that follow redirects, by the path under which they call the first upstream. */
const clients: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  fetch: path =>
    fetch(`${gateway.url}/proxy/${first.url}${path}`, {
      headers: { ...own, 'Gateway-Authorization': `Bearer ${token}` },
    }).then(answer => answer.text()),
  'fetch by /proxy/http/host': path =>
    fetch(`${gateway.url}/proxy/${first.url.replace('://', '/')}${path}`, {
      headers: { ...own, 'Gateway-Authorization': `Bearer ${token}` },
    }).then(answer => answer.text()),
}
const curl = (path: string) => {
  const fields = Object.entries({ ...own, 'Gateway-Authorization': `Bearer ${token}` })
  const args = fields.flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  return run('curl', ['-sSL', ...args, `${gateway.url}/proxy/${first.url}${path}`])
}

for (const [name, call] of Object.entries({ ...clients, ...(withSystem && { curl }) })) {
  t.test(`${name} takes credentials along within an upstream, and to no other`, async t => {
    await call('/here')
    t.strictSame(got(first), [all, all])
    await call('/there')
    t.strictSame(got(third), [none])
    await call('/on')
    t.strictSame(got(third), [none, none, none], 'nor to its next page')
    first.seen.length = 0
    await call('/back')
    t.strictSame(got(first), [all, none], 'nor back to the first')
  })
}

t.test('rules do not see the credentials that are dropped', async t => {
  const agent = await gateway.agent({ policyName: 'secretive' })
  const answer = await gateway.proxy(agent.token, `without-credentials/${third.url}/x`, { headers: own })
  t.strictSame([answer.status, answer.headers.get('gateway-error')], [403, 'policy_denied'])
  t.equal((await gateway.proxy(agent.token, `${third.url}/x`, { headers: own })).status, 200)
})

t.test('cookies are dropped too, and the token is not', async t => {
  const answer = await gateway.proxy(token, `without-credentials/${third.url}/x`, { headers: { Cookie: 'a=1' } })
  t.equal(await answer.text(), 'the third')
  t.equal(third.seen[0]?.headers.cookie, undefined)
})

t.test('a held request is stored and sent without them', async t => {
  const policyName = await gateway.policy({ name: 'hold', default: 'Hitl' })
  const held = await gateway.agent({ policyName })
  const answer = await gateway.proxy(held.token, `without-credentials/${third.url}/x`, { headers: own })
  const id = answer.headers.get('gateway-hitl-id')
  t.equal((await gateway.manage('POST', `/hitl/${id}/approve`, {})).status, 200)
  t.strictSame(got(third), [none])
})

t.test('a token of the gateway in Authorization is no credential of the upstream', async t => {
  const agent = await fallback.agent({ policyName: 'all' })
  const headers = { Authorization: `Bearer ${agent.token}` }
  const answer = await fetch(`${fallback.url}/proxy/${first.url}/there`, { headers })
  t.equal(answer.url, `${fallback.url}/proxy/${third.url}/there`)
  t.equal(await answer.text(), 'the third')
  t.equal((await fetch(`${fallback.url}/proxy/without-credentials/${third.url}/x`, { headers })).status, 200)
})
