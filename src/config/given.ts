import { didYouMean } from '../base/nearest.ts'
import { isSetting, type Setting, type SettingTree } from './setting.ts'
import type { ParsedValue } from './value.ts'

/** One mistake in the configuration. `place` is `gateway.yaml:8:5` or `env NAME`. */
export interface ConfigProblem {
  readonly place: string
  readonly message: string
}

/** `gateway.yaml:8:5: System:Server:Http:Port: must be <= 65535` */
export const formatProblem = (problem: ConfigProblem): string => `${problem.place}: ${problem.message}`

/** The value that a source gives to a setting. Undefined: the value is wrong, and a problem reports it. */
export interface GivenValue {
  readonly place: string
  readonly value: unknown
}

/** The values that all sources gave so far (a later source wins), and every mistake. */
export interface ConfigFindings {
  readonly given: Map<Setting<unknown>, GivenValue>
  readonly problems: ConfigProblem[]
}

/** Takes one reading into the findings. `name` stands in front of the problem; empty when the place says it all. */
export function record(
  findings: ConfigFindings,
  setting: Setting<unknown>,
  at: { readonly place: string; readonly name: string },
  reading: ParsedValue,
): void {
  if ('value' in reading) {
    findings.given.set(setting, { place: at.place, value: reading.value })
    return
  }
  findings.given.set(setting, { place: at.place, value: undefined })
  findings.problems.push({
    place: at.place,
    message: at.name === '' ? reading.problem : `${at.name}: ${reading.problem}`,
  })
}

/** A part of a tree, with its key as the schema spells it. */
export interface Child {
  readonly name: string
  readonly node: Setting<unknown> | SettingTree
}

/** The child of a tree by its key in any letter case. */
export function childOf(tree: SettingTree, key: string): Child | undefined {
  const wanted = key.toLowerCase()
  const found = Object.entries(tree).find(([name]) => name.toLowerCase() === wanted)
  return found && { name: found[0], node: found[1] }
}

/** @param keys on the way to the last of them, which the tree does not have */
export function unknownKey(tree: SettingTree, keys: readonly string[]): string {
  return adviceOnGone(keys) ?? `unknown key${didYouMean(keys.at(-1) ?? '', Object.keys(tree))}`
}

/** The values of a tree: what was given, else the default. Frozen all the way down. */
export function assemble(tree: SettingTree, given: ConfigFindings['given']): unknown {
  const entries = Object.entries(tree).map(([key, node]) => {
    if (!isSetting(node)) return [key, assemble(node, given)]
    const found = given.get(node)
    return [key, deepFreeze(found?.value ?? node.default)]
  })
  return Object.freeze(Object.fromEntries(entries))
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const item of Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}

/** Settings of earlier versions, and what to do about each that is still given. */
const gone: Readonly<Record<string, string>> = {
  'System:CircuitBreaker:WindowSeconds': 'remove it; failures within 60 seconds count',
  'Security:AgentAuth:TokenRequests:QueueLength': 'remove it; 32 secrets may wait to be hashed',
  'Policy:MaxJsonValues': 'remove it; a body may have 100000 values',
  'Proxy:Redirects': 'remove it; links of upstreams always lead through the gateway',
  'Proxy:Cookies': 'remove it; cookies of upstreams always get a path below their upstream',
  'Proxy:OversizeBody': 'remove it; a longer body decides as unreadable',
  'Security:AgentAuth:ExternalIdentity:Jwt:Binding': 'remove it; a token gets in as the agent that it is bound to',
  'Mcp:NoteToolChanges': 'remove it; changes of tools are always noted',
  'Telemetry:Metrics:Enabled': 'remove it; events are always counted',
  'Trust:QuarantineWindowSeconds': 'remove it; denials and losses within 300 seconds count',
}

const byName: ReadonlyMap<string, string> = new Map(
  Object.entries(gone).map(([name, advice]) => [name.toLowerCase(), advice]),
)

/** @param keys on the way to it, in any letter case; undefined when there never was such a setting */
function adviceOnGone(keys: readonly string[]): string | undefined {
  const advice = byName.get(keys.join(':').toLowerCase())
  return advice && `is no longer a setting: ${advice}`
}
