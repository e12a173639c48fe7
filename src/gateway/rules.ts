import { resolve } from 'node:path'
import type { Registry } from '../agents/registry.ts'
import { type Refusal, refuse, StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import type { WorkTurns } from '../pipeline/work-turns.ts'
import { describeChanges } from '../policies/changes.ts'
import type { PolicyEntry } from '../policies/entry.ts'
import { decisionSettings, languageOf, missingPolicies, soloRulebook, soloRulebooks } from '../policies/language.ts'
import { openPolicies } from '../policies/open.ts'
import { createSelfTest } from '../policies/policy-tests.ts'
import { createPolicyThread } from '../policies/policy-thread.ts'
import { createRulebooks } from '../policies/rulebooks.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import { type OpenExplanation, openExplanation } from '../policy/evaluation/explain.ts'
import type { DescriptionProblem, RequestDescription } from '../policy/request/describe.ts'
import type { Base } from './base.ts'

export interface RulesParts extends Pick<Base, 'config' | 'onSettings' | 'baseDirectory' | 'clock' | 'log' | 'store'> {
  readonly registry: Registry
  /** Called with the policies in force after each change. The change is answered when this resolves. */
  readonly onPolicies?: (list: readonly PolicyEntry[]) => Promise<void>
}

/** The policies in force, and which of them apply to an agent. */
export type Rules = Awaited<ReturnType<typeof openRules>>

/** @throws StartupError with a line for each mistake in the policies, or when a setting names one that is not there */
export async function openRules(parts: RulesParts) {
  const { config, log, registry } = parts
  const directory = resolve(parts.baseDirectory, config.Policy.Directory)
  const selfTest = createSelfTest(directory)
  const policies = await openPolicies({
    store: parts.store,
    clock: parts.clock,
    language: languageOf(config),
    directory,
    selfTest: entries => selfTest(soloRulebooks(entries, decisionSettings(config))),
    inline: config.Policies,
    onChange: parts.onPolicies,
    usedBy: name => userOf(name, config, registry),
    report: {
      reloaded(changes) {
        log.info({ count: changes.count }, `policies reloaded: ${describeChanges(changes)}`)
        for (const line of changes.shrunk) log.warn({}, line)
      },
      rejected: lines => log.error({ count: lines.length }, `policies not reloaded: ${lines.join('; ')}`),
    },
  })
  const missing = missingPolicies(config, name => policies.book.get(name) !== undefined)
  if (missing.length > 0) {
    policies.close()
    throw new StartupError(missing.join('\n'))
  }
  return {
    policies,
    /** Long work on policies, in a thread of its own. */
    work: createPolicyThread(error => log.error({ error }, 'the thread for work on policies ended')),
    rulebookOf: createRulebooks(config, policies.book, parts.onSettings),
    /**
     * Explains the decision of a policy on a described request, rule by rule.
     *
     * @param turns the turns of the data plane, so that requests and explanations share each round of the event loop
     */
    explain(policy: CompiledPolicy, description: unknown, turns: WorkTurns): Promise<object | Refusal> {
      const rulebook = soloRulebook(policy, decisionSettings(config))
      // The body was checked against openapi.json, which describes this very shape.
      return explainInTurns(openExplanation(rulebook, description as RequestDescription, parts.clock.now()), turns)
    },
  }
}

/** A URL that `/proxy/` refuses is refused with the same code. */
async function explainInTurns(open: OpenExplanation | DescriptionProblem, turns: WorkTurns): Promise<object | Refusal> {
  if ('problem' in open) return refuse(open.part === 'target' ? 'invalid_target' : 'invalid_body', open.problem)
  for (let begun = false; ; begun = true) {
    await turns.next('', begun)
    const explained = open.takeTurn()
    turns.spend(open.steps)
    if (explained !== undefined) return explained
  }
}

/** The setting or agent that still uses a policy, as text for people; undefined when there is none. */
function userOf(name: string, { Policy }: Config, registry: Registry): string | undefined {
  if (Policy.Global === name) return 'the setting Policy:Global'
  if (Policy.AssignOnRegistration === name) return 'the setting Policy:AssignOnRegistration'
  const user = registry.values().find(agent => agent.policyName === name)
  return user === undefined ? undefined : `agent ${user.id}`
}
