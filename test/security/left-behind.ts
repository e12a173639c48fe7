/** What one agent can make the gateway keep: the table of SECURITY.md. Threat T23. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { eventually } from '../fixtures/gateway.ts'
import { startReview } from '../fixtures/review.ts'
import { testdir } from '../fixtures/testdir.ts'

interface Entry {
  readonly action: string
  readonly actor: string
}

/** Nearly as long as a head may be. */
const longPath = `/${'p'.repeat(5_000)}/${'%C3%A4'.repeat(1_400)}`
/** Longest entry of the trail that an agent causes, bytes. */
const longestEntry = 4_096

t.test('entries of the audit trail that an agent causes are short, whatever it sends', async t => {
  const tools = { description: '' }
  const review = await startReview(t, {
    answer: (req, res) =>
      req.resume().on('end', () => {
        const list = Array.from({ length: 50 }, (_, n) => ({
          ...tools,
          name: `${n}${'€'.repeat(5_000)}`,
          inputSchema: {},
        }))
        const result = req.url?.includes('mcp') ? { tools: list } : {}
        res.writeHead(200, { 'Content-Type': 'application/json' })
        res.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
      }),
    // Long enough to withdraw or approve one on a busy machine.
    config: { HumanInTheLoop: { TimeoutSeconds: 6 } },
  })
  const { bot, call, hold, proxy, origin, approve, newBot } = review
  const url = origin.url + longPath
  // This one expires beside the others.
  await hold(longPath)
  const id = await hold(longPath, { headers: { 'Idempotency-Key': 'k'.repeat(255), 'X-Long': 'x'.repeat(800) } })
  t.equal((await call('DELETE', `/hitl/${id}`, { token: bot.token })).status, 200)
  const granted = await hold(longPath, { body: 'other' })
  await (await approve(granted, { grant: { minutes: 5, maxUses: 9, path: '/**' } })).text()
  t.equal((await proxy(bot.token, url, { method: 'POST', body: 'x' })).status, 200)
  await proxy(bot.token, url, { method: 'DELETE' })
  t.equal((await call('GET', `/agents?${'q'.repeat(8_000)}`, { token: bot.token })).status, 403)
  const reader = await newBot()
  await review.manage('PUT', `/agents/${reader.id}/policy`, { policyName: 'allow-all' })
  const headers = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  for (const description of ['a', 'b']) {
    tools.description = description
    await (await proxy(reader.token, `${url}/mcp?${'q'.repeat(900)}`, { method: 'POST', headers, body })).text()
  }
  const wanted = ['hitl.suspend', 'hitl.withdraw', 'hitl.expire', 'hitl.replay', 'hitl.grant.use', 'agent.trust']
  const all = [...wanted, 'management.refused', 'mcp.toolChanged']
  const trail = async () => {
    const { text } = await review.manage('GET', '/audit?pageSize=200')
    const { items }: { readonly items: readonly Entry[] } = JSON.parse(text)
    return items.filter(({ action }) => all.includes(action))
  }
  const entries = await eventually(trail, found => new Set(found.map(({ action }) => action)).size === all.length)
  for (const entry of entries) {
    t.ok(Buffer.byteLength(JSON.stringify(entry)) <= longestEntry, `${entry.action} ${JSON.stringify(entry).length}`)
  }
})

t.test('an agent that holds and takes back as fast as it can comes to an end on the disk', async t => {
  const directory = testdir(t)
  const settings = { MaxStoredBodyBytes: 10_000, MaxStoredBytes: 300_000, RetentionSeconds: 3_600 }
  const review = await startReview(t, {
    directory,
    alone: 'the files of SQLite are measured',
    config: { HumanInTheLoop: settings, System: { RateLimit: { Burst: 10_000 } } },
  })
  const { bot, call, proxy, origin } = review
  /** Bytes of the pages that hold something. */
  const used = () => {
    const file = new DatabaseSync(join(directory, 'data/gateway.db'), { readOnly: true })
    const pragma = (name: string) => Number(Object.values(file.prepare(`pragma ${name}`).get() ?? {})[0])
    const bytes = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
    file.close()
    return bytes
  }
  const before = used()
  let held = 0
  for (let status = 202; status === 202 && held < 1_000; held++) {
    const answer = await proxy(bot.token, `${origin.url}/${held}`, { method: 'POST', body: 'x'.repeat(9_000) })
    status = answer.status
    const id = answer.headers.get('gateway-hitl-id')
    if (id === null) t.match(await answer.json(), { code: 'hitl_storage_full' })
    else await (await call('DELETE', `/hitl/${id}`, { token: bot.token })).text()
  }
  t.ok(held > 30 && held < 300, `${held} requests`)
  const left = used() - before
  t.ok(left < 2 * settings.MaxStoredBytes + 2 * held * 1_024, `${left} bytes are left`)
  t.equal((await proxy(bot.token, `${origin.url}/again`, { method: 'POST', body: 'x'.repeat(9_000) })).status, 429)
})
