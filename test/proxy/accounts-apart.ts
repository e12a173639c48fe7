/** Random requests of many agents while accounts are connected, renewed, refused and disconnected. Threat T91. */
import t from 'tap'
import { startAccountProvider } from '../fixtures/account-provider.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { secureCaFile, secureName } from '../fixtures/origin.ts'
import { runs } from '../fixtures/runs.ts'

const provider = await startAccountProvider(t)
// Tokens end all the time, so that renewals are under way while others connect.
provider.lifeSeconds = 4
const ofServer = { Type: 'Connect', Issuer: provider.url, ClientId: 'gateway', ClientAuth: 'None' }
const host = `${secureName}:${provider.port}`
const gateway = await startGateway(t, {
  lookup: async () => ['127.0.0.1'],
  alone: 'its accounts are connected',
  config: {
    System: {
      PublicUrl: 'https://gateway.example',
      Server: { Threads: 2 },
      RateLimit: { RequestsPerMinute: 1_000_000 },
    },
    Proxy: { CaFile: secureCaFile },
    Credentials: (['Agent', 'Owner', 'All'] as const).map(Per => ({ ...ofServer, Name: Per.toLowerCase(), Per })),
    Upstreams: ['agent', 'owner', 'all'].map(name => ({ Host: host, Credential: name, Paths: [`/${name}`] })),
  },
})
const agents = await Promise.all(
  Array.from({ length: 4 }, async (_, at) => ({
    ...(await gateway.agent({ ownerId: `o${at % 2}` })),
    ownerId: `o${at % 2}`,
  })),
)
type Agent = (typeof agents)[number]

/** Whose account it is, as the provider names it in each token. */
const accounts = {
  agent: ({ id }: Agent) => ({ login: `agent.${id}`, of: { agentId: id } }),
  owner: ({ ownerId }: Agent) => ({ login: `owner.${ownerId}`, of: { ownerId } }),
  all: () => ({ login: 'all', of: {} }),
}
const names = ['agent', 'owner', 'all'] as const
const drawn = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

async function connect(name: (typeof names)[number], agent: Agent): Promise<void> {
  const { login, of } = accounts[name](agent)
  const offer = JSON.parse((await gateway.manage('POST', `/credentials/${name}/connect`, of)).text)
  const { url, session } = offer
  // Of more consents of a person at a time than are kept, the oldest are over.
  await gateway.manage('POST', `/credentials/${name}/connected`, { session, ...provider.consent(url, login) })
}

t.test('10,000 requests of many subjects get the account of their own subject, or none', async t => {
  for (const agent of agents) for (const name of names) await connect(name, agent)
  const counts = { sent: 0, refused: 0, mixed: [] as string[] }
  const one = async () => {
    const [agent, name, luck] = [drawn(agents), drawn(names), Math.random()]
    if (luck < 0.03) return connect(name, agent)
    const { login, of } = accounts[name](agent)
    if (luck < 0.04) {
      const query = new URLSearchParams(of as Record<string, string>)
      await gateway.manage('DELETE', `/credentials/${name}/token?${query}`)
      return undefined
    }
    const answer = await gateway.proxy(agent.token, `${provider.url}/${name}${luck < 0.1 ? '?refuse' : ''}`)
    const text = await answer.text()
    const [, found] = /^Bearer access-canary-(.+)-\d+$/.exec(text) ?? []
    if (found === undefined) counts.refused += 1
    else counts.sent += 1
    if (found !== undefined && found !== login) counts.mixed.push(`${found} for ${login}`)
    return undefined
  }
  const worker = async () => {
    for (let done = 0; done < runs(10_000, 60) / 10; done++) await one()
  }
  await Promise.all(Array.from({ length: 10 }, worker))
  t.strictSame(counts.mixed, [])
  t.ok(counts.sent > 0, `${counts.sent} were sent, ${counts.refused} were not`)
  t.comment(counts)
})
