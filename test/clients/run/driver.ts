/** Calls real clients under `agent-gateway run`, in each mode, and looks at what they made of the answers. */
import { hash, randomFillSync } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { secureSetup, startForward } from '../../fixtures/forward.ts'
import { eventually, merge } from '../../fixtures/gateway.ts'
import { testdir } from '../../fixtures/testdir.ts'
import { type Client, clients, modesOf, pythonFolder } from './clients.ts'
import { greeting, type Mode, modes, parts, reason } from './modes.ts'
import { keepResult, type Outcome } from './results.ts'
import { createGit } from './servers/git.ts'
import { answerImages } from './servers/images.ts'
import { answerMcp } from './servers/mcp.ts'
import { answerModels } from './servers/models.ts'
import { createPackages } from './servers/packages.ts'
import { type Session, type Started, startSession } from './session.ts'
import { startUpstream } from './upstream.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** `npm run test:clients` calls the clients with these names, separated by commas, in all modes. */
const { GATEWAY_TEST_CLIENTS: names } = process.env
const isWhole = names !== undefined
const named = new Set(names?.split(','))
/** Bytes of the large file. */
const size = isWhole ? 100_000_000 : 1
/** What a normal run asks: the others take minutes. */
const quick: readonly Mode[] = ['plain', 'refused', 'held']

const contains = (value: string) => ({ field: 'input.path', operator: 'contains', value })
const policy = {
  name: 'clients',
  default: 'Allow',
  rules: [
    { name: 'refused', effect: 'Deny', reason, conditions: [contains('/refused/')] },
    { name: 'held', effect: 'Hitl', waitSeconds: 120, conditions: [contains('/held/')] },
  ],
}

/** A gateway, the server behind it, and runs. */
async function startField(t: Test, isLocked: boolean, asked: readonly Client[]) {
  // Below the root, which a locked program sees, wherever it is.
  const work = join(root, '.tap/clients', `work-${process.pid}`)
  mkdirSync(work, { recursive: true })
  t.teardown(() => rmSync(work, { recursive: true, force: true }))
  const file = join(work, 'large.bin')
  const content = randomFillSync(Buffer.alloc(size))
  writeFileSync(file, content)
  const servers = [answerImages, answerModels, answerMcp, await createGit(t)]
  // To pack the large file takes seconds.
  if (asked.some(({ isSilent }) => isSilent)) servers.push(createPackages(join(work, 'packages'), file))
  const upstream = await startUpstream(t, file, servers)
  const more = {
    Policies: [{ name: 'allow-all', default: 'Allow' }, policy],
    // Each client is refused once, and all are one agent.
    Trust: { QuarantineDenials: 0, QuarantineBelow: 0 },
  }
  const gateway = await startForward(t, { ...secureSetup, config: merge(secureSetup.config ?? {}, more) })
  const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })
  const temporary = testdir(t)
  /** A run with a key of its own. */
  const openSession = async () => {
    const { id } = await gateway.agent({ policyName: policy.name })
    const made = await gateway.manage('POST', `/agents/${id}/keys`, { name: 'run' })
    const key = JSON.parse(made.text) as { id: string; key: string }
    const addresses = ['--at', gateway.url, '--proxy', `http://127.0.0.1:${gateway.forwardPort}`]
    const env = { AGENT_GATEWAY_KEY: key.key, TMPDIR: temporary, HOME: work }
    const session = startSession(t, [...(isLocked ? ['--lock'] : []), ...addresses], { cwd: root, env })
    return { session, revoke: () => gateway.manage('DELETE', `/keys/${key.id}`) }
  }
  return {
    ...{ work, file, upstream, gateway, openSession },
    sum: `${hash('sha256', content)}`,
    approve: createApproval(gateway.url, reviewer.token),
  }
}

type Field = Awaited<ReturnType<typeof startField>>

/** Approves all that a client has held, until it has ended; gives how many that were. */
function createApproval(gateway: string, token: string) {
  // An approval answers with what the server said, so it is not compared with openapi.json.
  return async (client: string, { ended }: Started): Promise<number> => {
    const over = new AbortController()
    void ended.then(() => over.abort())
    const call = (method: string, path: string) =>
      fetch(`${gateway}/hitl${path}`, { method, headers: { Authorization: `Bearer ${token}` }, signal: over.signal })
    const approved = new Set<string>()
    while (!over.signal.aborted) {
      const answer = await call('GET', '').catch(() => undefined)
      const held = ((await answer?.json().catch(() => undefined)) ?? []) as readonly Held[]
      for (const { id } of held.filter(({ id, url }) => url.includes(`/held/${client}`) && !approved.has(id))) {
        approved.add(id)
        // Not waited for: the answer may be a stream without an end.
        void call('POST', `/${id}/approve`)
          .then(answer => answer.text())
          .catch(() => {})
      }
      await setTimeout(20)
    }
    return approved.size
  }
}

interface Held {
  readonly id: string
  readonly url: string
}

/** Calls with each client in each mode. */
export async function testMatrix(t: Test, { isLocked }: { readonly isLocked: boolean }): Promise<void> {
  const called = clients.filter(client => isAsked(client, isLocked))
  const field = await startField(t, isLocked, called)
  const { session } = await field.openSession()
  for (const client of called) {
    await t.test(`${client.title}${isLocked ? ', locked' : ''}`, async t => {
      const asked = modesOf(client).filter(mode => isWhole || quick.includes(mode))
      const outcomes: Outcome[] = []
      for (const mode of asked) {
        const since = performance.now()
        const ended = await t.test(modes[mode], t => checks[mode](t, field, { client, mode, session }))
        outcomes.push({ mode, ok: ended?.ok === true, seconds: (performance.now() - since) / 1_000 })
      }
      if (isWhole) keepResult({ client, isLocked, outcomes, version: await versionOf(field, session, client) })
    })
  }
  await session.end()
}

/** A normal run asks those under a lock that need one, since the lock is the same for all. */
function isAsked({ name, from, onlyLocked = false }: Client, isLocked: boolean): boolean {
  if (isWhole) return named.has(name)
  return from === 'basic' && onlyLocked === isLocked
}

interface Case {
  readonly client: Client
  readonly mode: Mode
  readonly session: Session
}

function start({ work, file, upstream }: Field, { client, mode, session }: Case): Started {
  const cwd = join(work, client.name, mode)
  mkdirSync(cwd, { recursive: true })
  const command = client.command({ url: upstream.url(mode, client.name), mode, file })
  return session.start(command, cwd, { HOME: cwd, PYTHONPATH: pythonFolder, PYTHONDONTWRITEBYTECODE: '1' })
}

async function versionOf({ work }: Field, session: Session, { version }: Client): Promise<string> {
  const { said, ended } = session.start(version, work, { PYTHONPATH: pythonFolder })
  const end = await ended
  return end === 0 ? (/\d+\.\d[\w.]*/.exec(said())?.[0] ?? said()) : `no version: ${end}`
}

type Check = (t: Test, field: Field, asked: Case) => Promise<void>

/** Resolves when a client has the first part of a streamed answer, as far as one can know. */
async function begins({ upstream }: Field, { mode, client }: Case, { shows, ended }: Started): Promise<void> {
  if (client.isSilent !== true) return shows(parts.first)
  const begun = eventually(() => upstream.hasBegun(mode, client.name), Boolean)
  await Promise.race([begun, ended.then(end => Promise.reject(new Error(`ended with ${end} before the server began`)))])
}

/** What a client says once it has the last part of a streamed answer. */
const whole = new RegExp(`${parts.last}|${greeting}`)

/** The client has ended well, and said something. */
const says =
  (text: (field: Field) => readonly string[]): Check =>
  async (t, field, asked) => {
    const started = start(field, asked)
    t.equal(await started.ended, 0, started.said())
    for (const one of text(field)) t.match(started.said(), one)
    t.not(field.upstream.seen(asked.mode, asked.client.name).length, 0, 'the server was asked')
  }

const large = says(({ sum }) => [String(size), sum])

const checks: Readonly<Record<Mode, Check>> = {
  plain: says(() => [greeting]),
  down: large,
  up: large,
  async stream(t, field, asked) {
    const started = start(field, asked)
    await begins(field, asked, started)
    t.notMatch(started.said(), whole)
    field.upstream.release(asked.mode, asked.client.name)
    t.equal(await started.ended, 0, started.said())
    t.match(started.said(), whole)
  },
  async refused(t, field, asked) {
    const started = start(field, asked)
    t.not(await started.ended, 0)
    t.match(started.said(), reason)
    t.strictSame(field.upstream.seen(asked.mode, asked.client.name), [])
  },
  async held(t, field, asked) {
    const started = start(field, asked)
    const approved = await field.approve(asked.client.name, started)
    t.equal(await started.ended, 0, started.said())
    t.match(started.said(), greeting)
    t.ok(approved > 0, 'it was held')
  },
  async revoked(t, field, asked) {
    const { session, revoke } = await field.openSession()
    const started = start(field, { ...asked, session })
    await begins(field, asked, started)
    await revoke()
    const end = await started.ended
    t.type(end, 'number', `it ended with ${end}`)
    t.not(end, 0, started.said())
    t.notMatch(started.said(), whole)
    await session.end()
  },
}
