import type { Test } from 'tap'
import { actions, agent, type Engine, entry } from './samples.ts'

const roomy = { maxServers: 10, maxBytes: 1_000_000 }

export function tools(t: Test, engine: Engine): void {
  t.test('the tools that an agent has seen are kept by server, and replaced with their audit entry', async t => {
    const store = await engine(t)
    const seen = { agentId: 'a1', server: 'https://m.example/mcp', digests: { add: 'x', '__proto__ ': 'y' }, at: 1_000 }
    t.equal(await store.tools.digests('a1', seen.server), undefined)
    await store.tools.keep(seen, roomy)
    t.strictSame(await store.tools.digests('a1', seen.server), seen.digests)
    await store.tools.keep({ ...seen, digests: { add: 'z' }, at: 2_000 }, roomy, entry('mcp.toolChanged'))
    t.strictSame(await store.tools.digests('a1', seen.server), { add: 'z' })
    t.equal(await store.tools.digests('a2', seen.server), undefined)
    t.strictSame(await actions(store), ['mcp.toolChanged'])
  })

  t.test('of too many digests of an agent those that changed first are forgotten', async t => {
    const store = await engine(t)
    const digests = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`tool-${n}`, 'd'.repeat(43)]))
    const maxBytes = 2 * JSON.stringify(digests).length
    const keep = (server: string, at: number) =>
      store.tools.keep({ agentId: 'a1', server, digests, at }, { ...roomy, maxBytes })
    for (const at of [1, 2, 3]) await keep(`s${at}`, at)
    const left = async () =>
      (await Promise.all(['s1', 's2', 's3', 's4'].map(server => store.tools.digests('a1', server)))).map(Boolean)
    t.strictSame(await left(), [false, true, true, false])
    await keep('s4', 0)
    t.strictSame(await left(), [false, false, true, true])
  })

  t.test('of too many servers of an agent those that changed first are forgotten, and all with the agent', async t => {
    const store = await engine(t)
    await store.agents.insert(agent('a1'), 'hash', entry('agent.register'))
    const keep = (agentId: string, server: string, at: number) =>
      store.tools.keep({ agentId, server, digests: { at: String(at) }, at }, { ...roomy, maxServers: 2 })
    await keep('a2', 'old', 1)
    for (const at of [1, 2, 3]) await keep('a1', `s${at}`, at)
    const left = async (agentId: string, servers: readonly string[]) =>
      (await Promise.all(servers.map(server => store.tools.digests(agentId, server)))).map(found => found !== undefined)
    t.strictSame(await left('a1', ['s1', 's2', 's3']), [false, true, true])
    await keep('a1', 's4', 0)
    t.strictSame(await left('a1', ['s2', 's3', 's4']), [true, true, true], 'the one that is kept is never forgotten')
    await store.agents.remove('a1', entry('agent.remove'))
    t.strictSame(await left('a1', ['s2', 's3', 's4']), [false, false, false])
    t.strictSame(await left('a2', ['old']), [true])
  })
}
