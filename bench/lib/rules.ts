/** Where all programs of a run are. */
export const host = '127.0.0.1'

/** A rule of the workload: requests with this method to this path of this host are refused. */
export interface DenyRule {
  readonly method: string
  readonly host: string
  /** Beginning of the path. */
  readonly path: string
}

/** The same rules for everyone. None of them applies to what is sent, so each has to be ruled out. */
export function denyRules(count: number): readonly DenyRule[] {
  return Array.from({ length: count }, (_, index) => ({
    method: 'POST',
    host: `host${index}.example.com`,
    path: '/admin',
  }))
}

export interface PolicyOptions {
  readonly name: string
  readonly rules: readonly DenyRule[]
  /** Host that is allowed. */
  readonly upstream: string
  /** Adds a rule that reads the body of a POST. */
  readonly bodyRule?: boolean
}

/** A policy of the gateway: the deny rules, one that allows the upstream, and Deny for everything else. */
export function policyDocument({ name, rules, upstream, bodyRule = false }: PolicyOptions): object {
  const denials = rules.map(({ method, host, path }, index) => ({
    name: `deny-${index}`,
    priority: 10,
    effect: 'Deny',
    conditions: [
      { field: 'input.method', operator: 'eq', value: method },
      { field: 'input.host', operator: 'eq', value: host },
      { field: 'input.path', operator: 'startsWith', value: path },
    ],
  }))
  const largeAmount = {
    name: 'large-amount',
    priority: 5,
    effect: 'Deny',
    conditions: [
      { field: 'input.method', operator: 'eq', value: 'POST' },
      { field: 'input.host', operator: 'eq', value: upstream },
      { field: 'input.body.amount', operator: 'gt', value: 1000 },
    ],
  }
  const allowed = {
    name: 'allow-upstream',
    priority: 1,
    effect: 'Allow',
    conditions: [
      { field: 'input.method', operator: 'in', value: ['GET', 'POST'] },
      { field: 'input.host', operator: 'eq', value: upstream },
      { field: 'input.path', operator: 'startsWith', value: '/' },
    ],
  }
  return { name, default: 'Deny', rules: [...denials, ...(bodyRule ? [largeAmount] : []), allowed] }
}

/** The policies of a gateway under load: the one that decides, first. */
export const benchPolicy = (rules: number, bodyRule = false): object =>
  policyDocument({ name: 'bench', rules: denyRules(rules), upstream: host, bodyRule })
