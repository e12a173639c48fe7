import { createHash } from 'node:crypto'
import type { Condition, Node, Policy, Rule, Silence } from './model.ts'

/** A policy as the API returns it and files may hold it: values are text, effects Allow, Deny or Hitl (spec 2.2). */
export interface PolicyDocument {
  readonly name: string
  readonly description: string
  readonly owner: string
  readonly default: string
  readonly rules: readonly RuleDocument[]
  readonly timezone?: string
  readonly onUnreadable?: string
  readonly shadowOf?: string
}

export interface RuleDocument {
  readonly name: string
  readonly priority: number
  readonly effect: string
  readonly conditions: readonly unknown[]
  readonly mode?: string
  readonly onUnreadable?: string
  readonly riskExempt?: boolean
  readonly budget?: string
  readonly credential?: string
  readonly reason?: string
  readonly title?: string
  readonly approvals?: number
  readonly waitSeconds?: number
  readonly whenUndecided?: string
  readonly chatApproval?: boolean
  readonly chatFields?: readonly string[]
  readonly silence?: readonly Silence[]
}

/** The document of a policy, from which parsePolicy makes the same policy. Keys with default values are left out. */
export function formatPolicy(policy: Policy): PolicyDocument {
  return {
    name: policy.name,
    description: policy.description,
    owner: policy.owner,
    default: policy.default,
    ...(policy.timezone === 'UTC' ? {} : { timezone: policy.timezone }),
    ...(policy.onUnreadable === 'failSafe' ? {} : { onUnreadable: policy.onUnreadable }),
    ...(policy.shadowOf === null ? {} : { shadowOf: policy.shadowOf }),
    rules: policy.rules.map(formatRule),
  }
}

/** The same of one rule. */
export function formatRule(rule: Rule): RuleDocument {
  return {
    name: rule.name,
    priority: rule.priority,
    effect: rule.effect,
    ...(rule.mode === 'enforce' ? {} : { mode: rule.mode }),
    ...(rule.onUnreadable === null ? {} : { onUnreadable: rule.onUnreadable }),
    ...(rule.riskExempt ? { riskExempt: true } : {}),
    ...(rule.budget === '' ? {} : { budget: rule.budget }),
    ...(rule.credential === '' ? {} : { credential: rule.credential }),
    ...(rule.reason === '' ? {} : { reason: rule.reason }),
    ...(rule.title === '' ? {} : { title: rule.title }),
    ...(rule.approvals === 1 ? {} : { approvals: rule.approvals }),
    ...(rule.waitSeconds === null ? {} : { waitSeconds: rule.waitSeconds }),
    ...(rule.whenUndecided === 'accepted' ? {} : { whenUndecided: rule.whenUndecided }),
    ...(rule.chatApproval ? { chatApproval: true, chatFields: rule.chatFields } : {}),
    ...(rule.silence.length === 0 ? {} : { silence: rule.silence }),
    conditions: rule.conditions.map(formatNode),
  }
}

function formatNode(node: Node): unknown {
  if ('all' in node) return { all: node.all.map(formatNode) }
  if ('any' in node) return { any: node.any.map(formatNode) }
  return 'not' in node ? { not: formatNode(node.not) } : formatCondition(node)
}

function formatCondition(condition: Condition): unknown {
  return {
    field: condition.field,
    operator: condition.operator,
    value: condition.value,
    ...(condition.valueType === undefined ? {} : { valueType: condition.valueType }),
    ...(condition.ignoreCase ? { ignoreCase: true } : {}),
    ...(condition.quantifier === 'any' ? {} : { quantifier: condition.quantifier }),
  }
}

/** `sha256:<hex>` of the canonical form, made rule by rule in the order of declaration: a large policy takes milliseconds. */
export class VersionDigest {
  readonly #hash = createHash('sha256')

  constructor(policy: Policy) {
    this.#hash.update(JSON.stringify(formatPolicy({ ...policy, rules: [] })))
  }

  add(rule: Rule): void {
    this.#hash.update(`\n${JSON.stringify(formatRule(rule))}`)
  }

  finish(): string {
    return `sha256:${this.#hash.digest('hex')}`
  }
}
