/** Two gateways on one database: an account that is connected at one of them. Threat T91. */
import t from 'tap'
import { startAccountProvider } from '../fixtures/account-provider.ts'
import { onDatabase, startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'

const provider = await startAccountProvider(t)
const ofServer = { Type: 'Connect', Issuer: provider.url, ClientId: 'gateway', ClientAuth: 'None' }
const config = {
  ...onDatabase(await createSchema(t)),
  System: { PublicUrl: 'https://gateway.example' },
  Proxy: { CaFile: secureCaFile },
  Credentials: [{ ...ofServer, Name: 'mail' }],
  Upstreams: [{ Host: `${secureName}:${provider.port}`, Credential: 'mail' }],
}
const lookup = async () => ['127.0.0.1']
const one = await startGateway(t, { config, lookup })
const two = await startGateway(t, { config, lookup })
const [anna, bob] = [await one.agent(), await one.agent()]
const sent = async (gateway: typeof one, { token }: typeof anna) => {
  const answer = await gateway.proxy(token, `${provider.url}/mail`)
  return answer.status === 200 ? answer.text() : String(answer.status)
}

async function connect(agentId: string, login: string) {
  const { url, session } = JSON.parse((await one.manage('POST', '/credentials/mail/connect', { agentId })).text)
  const given = { session, ...provider.consent(url, login) }
  const ends = [two, one, two].map(({ manage }) => manage('POST', '/credentials/mail/connected', given))
  return (await Promise.all(ends)).map(({ status }) => status).sort()
}

t.test('a consent that was begun at one gateway ends once, at any, and its token is sent by both', async t => {
  for (const gateway of [one, two]) t.equal(await sent(gateway, anna), '403')
  t.strictSame(await connect(anna.id, 'anna'), [200, 409, 409])
  t.strictSame(await connect(bob.id, 'bob'), [200, 409, 409])
  for (const gateway of [one, two]) {
    t.match(await sent(gateway, anna), /canary-anna/)
    t.match(await sent(gateway, bob), /canary-bob/)
  }
  t.equal(await sent(one, anna), await sent(two, anna))
})

t.test('an account that is disconnected at one gateway is sent by none', async t => {
  t.equal((await two.manage('DELETE', `/credentials/mail/token?agentId=${anna.id}`)).status, 200)
  for (const gateway of [one, two]) t.equal(await sent(gateway, anna), '403')
  t.match(await sent(one, bob), /canary-bob/)
})

t.test('an agent that is removed at one gateway takes its account from both', async t => {
  t.equal((await two.manage('DELETE', `/agents/${bob.id}`)).status, 200)
  t.notMatch(await sent(one, bob), /canary/)
  t.strictSame(JSON.parse((await one.manage('GET', '/credentials/mail/accounts')).text).length, 1)
})
