/** What `policy simulate` and `policy drift` print of the answers of a gateway, and their exit codes. */
import t, { type Test } from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const folder = testdir(t, { 'p.yaml': 'name: p\nrules: []\n', 'gateway.yaml': '{}' })
const config = ['--config', `${folder}/gateway.yaml`]

/** Runs a command against a gateway that gives this answer. */
async function ask(t: Test, answer: object, ...args: readonly string[]) {
  const origin = await startOrigin(t, (_req, res) => res.end(JSON.stringify(answer)))
  const shell = fakeShell(['policy', ...args, ...config, '--at', origin.url], { AGENT_GATEWAY_TOKEN: 'x' })
  const code = await runCommand(shell)
  return { code, out: shell.printed, err: shell.complained.join('\n'), seen: origin.seen }
}

const change = { before: 'Deny', after: 'Allow', rule: null, count: 3, agents: ['a'], examples: [] }
const unknownExamples = [{ method: 'POST', url: 'https://a.example/x', count: 1, fields: ['input.body.amount'] }]
const left = { agentsRead: 1, agentsLeftOut: 0, incompleteSince: null }
const simulated = { same: 4, unknown: 1, changes: [change], unknownExamples, ...left }

t.test('a simulation is printed with what it left out', async t => {
  const named = { ...change, rule: 'r', examples: [{ method: 'GET', url: 'https://a.example/x', count: 2 }] }
  const answer = { ...simulated, changes: [change, named], agentsLeftOut: 2, incompleteSince: '2026-01-01T00:00:00Z' }
  const { code, out, seen } = await ask(t, answer, 'simulate', `${folder}/p.yaml`, '--agent', 'a', '--since', '7d')
  t.equal(code, 0)
  t.strictSame(out, [
    '      3 x  Deny -> Allow  by the default, of 1 agents',
    '      3 x  Deny -> Allow  by r, of 1 agents',
    '             GET https://a.example/x (2)',
    '6 changed, 4 the same, 1 not known; 1 agents',
    '      1 x  not known: POST https://a.example/x, rests on input.body.amount',
    '2 more agents were left out: name them with --agent',
    'not complete: requests were not recorded since 2026-01-01T00:00:00Z',
  ])
  t.match(JSON.parse(String(seen[0]?.body)), { policy: { name: 'p' }, agentIds: ['a'], since: /^20/ })
})

t.test('--fail-on is for the effects that it names, and for no other word', async t => {
  const codeOf = async (what: string) =>
    (await ask(t, simulated, 'simulate', `${folder}/p.yaml`, '--fail-on', what)).code
  t.strictSame([await codeOf('new-deny,new-allow'), await codeOf('new-deny,new-hitl')], [3, 0])
  t.equal(await codeOf('new-allow,wider'), 2)
  t.equal((await ask(t, simulated, 'simulate')).code, 2)
})

const drift = { rules: [], unused: [], alwaysApproved: [], ofOneAgent: [], uncovered: [], stopped: [] }

t.test('drift is printed by its kinds, and its absence in two words', async t => {
  const shape = { agentId: 'a', method: 'GET', url: 'https://a.example/x', count: 2, lastAt: '2026-01-02T03:04:05Z' }
  const answer = { ...drift, unused: ['r', 's'], uncovered: [shape], incompleteSince: '2026-01-01T00:00:00Z' }
  const { out, seen } = await ask(t, answer, 'drift', 'a b')
  t.strictSame(out, [
    'decided nothing: r, s',
    'covered by no rule',
    '      2 x  GET https://a.example/x, last 2026-01-02, by a',
    'not complete: requests were not recorded since 2026-01-01T00:00:00Z',
  ])
  t.match(seen[0]?.target, /\/policies\/a%20b\/drift$/)
  t.strictSame((await ask(t, { ...drift, incompleteSince: null }, 'drift', 'p')).out, ['no drift'])
  t.equal((await ask(t, drift, 'drift')).code, 2)
})
