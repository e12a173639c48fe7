/** What every engine must do: the contract of src/storage/store.ts. */

import type { Test } from 'tap'
import { methods } from '../../src/storage/methods.ts'
import type { Store } from '../../src/storage/store.ts'
import { agents } from './contract/agents.ts'
import { audit } from './contract/audit.ts'
import { bytes, type Query } from './contract/bytes.ts'
import { calls } from './contract/calls.ts'
import { codes } from './contract/codes.ts'
import { credentials } from './contract/credentials.ts'
import { deliveries } from './contract/deliveries.ts'
import { events } from './contract/events.ts'
import { grants } from './contract/grants.ts'
import { hits } from './contract/hits.ts'
import { identities } from './contract/identities.ts'
import { messages } from './contract/messages.ts'
import { policies } from './contract/policies.ts'
import { queue } from './contract/queue.ts'
import { races } from './contract/races.ts'
import { requestRaces } from './contract/races-requests.ts'
import type { Engine } from './contract/samples.ts'
import { shapes } from './contract/shapes.ts'
import { spend } from './contract/spend.ts'
import { subscriptions } from './contract/subscriptions.ts'
import { sweeps } from './contract/sweeps.ts'
import { texts } from './contract/texts.ts'
import { tools } from './contract/tools.ts'
import { verdicts } from './contract/verdicts.ts'

interface Others {
  /** Another store on the same data as that of the engine; the same one when an engine has but one. */
  readonly other: Store
  readonly query: Query
  /** Whether the other store is that of the same gateway. */
  readonly isOne?: boolean
}

export function contract(t: Test, plain: Engine, { other, query, isOne = false }: Others): void {
  const called = new Set<string>()
  const engine: Engine = async t => noting(await plain(t), called)
  agents(t, engine)
  policies(t, engine)
  queue(t, engine)
  verdicts(t, engine)
  grants(t, engine)
  tools(t, engine)
  shapes(t, engine)
  hits(t, engine, other)
  spend(t, engine, other)
  codes(t, engine)
  credentials(t, engine, { other, isOne })
  identities(t, engine, other)
  messages(t, engine)
  subscriptions(t, engine, other)
  deliveries(t, engine)
  sweeps(t, engine, other)
  audit(t, engine)
  texts(t, engine)
  races(t, engine, other)
  requestRaces(t, engine, other)
  events(t, engine, other)
  calls(t, engine, other)
  bytes(t, engine, { other, query })

  t.test('every operation was called above', async t => {
    const { probe: _, ...tables } = methods
    const all = Object.entries(tables).flatMap(([table, of]) => Object.keys(of).map(name => `${table}.${name}`))
    t.strictSame([...called].sort(), all.sort())
  })
}

/** Notes the operations that are called: `agents.all`. */
function noting(store: Store, called: Set<string>): Store {
  const get = (table: keyof typeof methods) => (of: object, method: string) => {
    called.add(`${table}.${method}`)
    return Reflect.get(of, method)
  }
  const noted = <T extends object>(table: keyof typeof methods, of: T): T =>
    new Proxy(of, { get: get(table) as ProxyHandler<T>['get'] & object })
  const {
    agents,
    policies,
    hitl,
    grants,
    tools,
    shapes: recorded,
    hits: decided,
    spend: spent,
    tokens,
    codes,
    credentials: keptTokens,
    deliveries,
    audit,
    identities,
    messages,
    subscriptions,
  } = store
  return {
    ...store,
    agents: noted('agents', agents),
    identities: noted('identities', identities),
    messages: noted('messages', messages),
    subscriptions: noted('subscriptions', subscriptions),
    policies: noted('policies', policies),
    hitl: noted('hitl', hitl),
    grants: noted('grants', grants),
    tools: noted('tools', tools),
    shapes: noted('shapes', recorded),
    hits: noted('hits', decided),
    spend: noted('spend', spent),
    tokens: noted('tokens', tokens),
    codes: noted('codes', codes),
    credentials: noted('credentials', keptTokens),
    deliveries: noted('deliveries', deliveries),
    audit: noted('audit', audit),
  }
}
