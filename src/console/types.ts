/** Made from the schemas of openapi.json by test/fixtures/console-types.ts. Do not edit. */

export interface Agent {
  readonly id: string
  readonly name: string
  readonly ownerId: string
  readonly status: AgentStatus
  readonly policyName: string | null
  readonly trustScore: number
  readonly roles: readonly Role[]
  readonly externalSubject: string | null
  readonly tags: Readonly<Record<string, string>>
  readonly createdAt: string
}

export interface AgentActivity {
  readonly agent: Agent
  readonly counts: {
    readonly requestsLastMinute: number
    readonly deniedLast10m: number
    readonly hitlLast24h: number
    readonly humanDeniedLast24h: number
  }
  readonly trust: readonly {
    readonly at: string
    readonly action: string
    readonly actor: string
    readonly trustBefore: number | null
    readonly trustAfter: number | null
    readonly causes: Readonly<Record<string, number>>
  }[]
  readonly verdicts: readonly PastRequest[]
  readonly incidents: readonly {
    readonly at: string
    readonly requestId: string
    readonly method: string
    readonly origin: string
    readonly path: string
    readonly outcome: string
    readonly policy: string | null
    readonly rule: string | null
    readonly hitlId: string | null
  }[]
}

export interface AgentPage {
  readonly items: readonly AgentSummary[]
  readonly page: number
  readonly pageSize: number
  readonly totalCount: number
}

export interface AgentRegistration {
  readonly name: string
  readonly ownerId: string
  readonly clientSecret?: string
  readonly roles?: readonly Role[]
  readonly policyName?: string
  readonly externalSubject?: string
}

export type AgentStatus = 'Active' | 'Inactive' | 'Quarantined' | 'Revoked'

export interface AgentSummary {
  readonly id: string
  readonly name: string
  readonly ownerId: string
  readonly status: AgentStatus
  readonly policyName: string | null
  readonly trustScore: number
}

export interface Approval {
  readonly comment?: string
  readonly resend?: boolean
  readonly grant?: GrantTerms
}

export interface AuditPage {
  readonly items: readonly AuditRecord[]
  readonly page: number
  readonly pageSize: number
  readonly totalCount: number
  readonly next: number | null
}

export interface AuditRecord {
  readonly seq: number
  readonly at: number
  readonly timestamp: string
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly requestId: string | null
  readonly details: Readonly<Record<string, unknown>>
  readonly previous: string
  readonly hash: string
}

export interface AuditVerification {
  readonly status: 'running' | 'intact' | 'broken'
  readonly verifiedTo: number
  readonly lastHash: string
  readonly firstBroken: number | null
  readonly why: string | null
  readonly verifiedAt: string | null
  readonly reached: number
}

export interface Condition {
  readonly field?: string
  readonly operator?: string
  readonly value?: string | number | boolean | readonly unknown[]
  readonly quantifier?: 'any' | 'all'
  readonly ignoreCase?: boolean
  readonly valueType?: 'number' | 'boolean'
  readonly all?: readonly Condition[]
  readonly any?: readonly Condition[]
  readonly not?: Condition
}

export interface ConditionExplanation {
  readonly condition: string
  readonly value: 'true' | 'false' | 'unknown' | 'unreadable'
  readonly actual?: unknown
  readonly inner?: readonly ConditionExplanation[]
}

export interface ConsoleSession {
  readonly accessToken: string
  readonly token: string
  readonly tokenType: 'Bearer'
  readonly expiresAt: string
  readonly endsAt: string
  readonly agent: {
    readonly id: string
    readonly name: string
    readonly ownerId: string
    readonly roles: readonly Role[]
  }
}

export interface Denial {
  readonly comment?: string
}

export type Effect = string

export interface ExplainRequest {
  readonly request: {
    readonly method?: string
    readonly url: string
    readonly headers?: Readonly<Record<string, string | readonly string[]>>
    readonly body?: unknown
    readonly destinationIp?: string
    readonly clientIp?: string
    readonly bodyLimit?: number
    readonly risk?: number
  }
  readonly agent?: {
    readonly id?: string
    readonly name?: string
    readonly ownerId?: string
    readonly status?: string
    readonly policyName?: string | null
    readonly createdAt?: number
    readonly ageHours?: number
    readonly tags?: Readonly<Record<string, string>>
    readonly claims?: Readonly<Record<string, unknown>>
    readonly trustScore?: number
    readonly requestsLastMinute?: number
    readonly deniedLast10m?: number
    readonly hitlLast24h?: number
    readonly humanDeniedLast24h?: number
    readonly toolChangesLast24h?: number
    readonly bytesToday?: number
    readonly medianBytesPerDay?: number
    readonly usualBodyBytes?: number
    readonly hostSeen?: boolean
  }
  readonly time?: string
  readonly risk?: number
  readonly phase?: 'head' | 'body'
  readonly riskThreshold?: number
}

export interface Explanation {
  readonly result: {
    readonly decision?: string | null
    readonly source?: string
    readonly rule?: string | null
    readonly reason?: string
    readonly pending?: readonly string[]
    readonly otherwise?: string | null
  }
  readonly readings?: readonly string[]
  readonly rules: readonly {
    readonly rule: string
    readonly effect: Effect
    readonly value: 'true' | 'false' | 'unknown' | 'unreadable'
    readonly matches: boolean
    readonly priority: number
    readonly mode: 'enforce' | 'shadow'
    readonly conditions: readonly ConditionExplanation[]
  }[]
}

export interface FieldError {
  readonly field: string
  readonly message: string
  readonly code?: string
}

export interface Fleet {
  readonly newest: number
  readonly members: readonly FleetMember[]
}

export interface FleetMember {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly addresses: readonly string[]
  readonly state: 'Serving' | 'Loading' | 'Silent' | 'Fenced'
  readonly lag: number | null
  readonly differs: readonly string[]
  readonly isThis: boolean
  readonly startedAt: string
  readonly lastSeenAt: string
}

export interface Grant {
  readonly id: string
  readonly agentId: string
  readonly agentName: string | null
  readonly policyName: string
  readonly rule: string | null
  readonly method: string
  readonly origin: string
  readonly path: string
  readonly maxUses: number
  readonly uses: number
  readonly hitlId: string
  readonly grantedBy: string
  readonly createdAt: string
  readonly expiresAt: string
}

export interface GrantTerms {
  readonly minutes: number
  readonly maxUses: number
  readonly path?: string
}

export interface Health {
  readonly status: 'Healthy' | 'Unhealthy'
  readonly healthCheckDuration: string
  readonly parts: {
    readonly storage: 'Healthy' | 'Unhealthy'
    readonly threads: 'Healthy' | 'Unhealthy'
    readonly log: 'Healthy' | 'Unhealthy'
  }
}

export interface HitlRead {
  readonly id: string
  readonly status: HitlStatus
  readonly pending: HitlRequest
}

export interface HitlRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly reason: string
  readonly agentId: string
  readonly timestamp: string
  readonly expiresAt: string
  readonly status: HitlStatus
  readonly bodyBytes: number
  readonly digest: string
  readonly agentName?: string | null
  readonly ownerId?: string
  readonly host?: string
  readonly policyName?: string | null
  readonly policyVersion?: string | null
  readonly rule?: string | null
  readonly ruleReason?: string | null
  readonly title?: string | null
  readonly operation?: string | null
  readonly matched?: readonly Readonly<Record<string, unknown>>[]
  readonly risk?: Readonly<Record<string, unknown>> | null
  readonly digests?: {
    readonly query: string
    readonly fields: string
    readonly body: string
  }
  readonly findings?: Readonly<Record<string, number>>
  readonly waitedSeconds?: number
  readonly approvalsNeeded?: number
  readonly approvedBy?: readonly string[]
  readonly people?: Readonly<Record<string, string>>
  readonly decidedBy?: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly addedFields?: readonly string[]
  readonly findingPlaces?: readonly {
    readonly detector: string
    readonly from: number
    readonly to: number
  }[]
  readonly body: string
  readonly bodyEncoding?: 'utf8' | 'base64'
  readonly replay?: Replay
  readonly attempt?: number
  readonly decidedAt?: string | null
  readonly comment?: string | null
  readonly responseStatus?: number | null
  readonly responseStored?: boolean
}

export type HitlStatus = 'Pending' | 'Approved' | 'Denied' | 'Withdrawn' | 'Expired'

export interface HitlStatusRead {
  readonly id: string
  readonly status: HitlStatus
  readonly request: HitlRequest
}

export interface HitlSummary {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly reason: string
  readonly agentId: string
  readonly timestamp: string
  readonly expiresAt: string
  readonly status: HitlStatus
  readonly bodyBytes: number
  readonly digest: string
  readonly agentName?: string | null
  readonly ownerId?: string
  readonly host?: string
  readonly policyName?: string | null
  readonly policyVersion?: string | null
  readonly rule?: string | null
  readonly ruleReason?: string | null
  readonly title?: string | null
  readonly operation?: string | null
  readonly matched?: readonly Readonly<Record<string, unknown>>[]
  readonly risk?: Readonly<Record<string, unknown>> | null
  readonly digests?: {
    readonly query: string
    readonly fields: string
    readonly body: string
  }
  readonly findings?: Readonly<Record<string, number>>
  readonly waitedSeconds?: number
  readonly approvalsNeeded?: number
  readonly approvedBy?: readonly string[]
  readonly people?: Readonly<Record<string, string>>
  readonly decidedBy?: string | null
}

export interface Key {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
}

export interface KeyTerms {
  readonly name: string
  readonly expiresAt?: string | null
}

export interface NewKey {
  readonly id: string
  readonly name: string
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
  readonly key: string
}

export interface Overview {
  readonly stepSeconds: number
  readonly until: string
  readonly requests: {
    readonly forwarded: Series
    readonly held: Series
    readonly denied: Series
    readonly limited: Series
    readonly refused: Series
    readonly failed: Series
    readonly aborted: Series
  }
  readonly decisions: {
    readonly Allow: Series
    readonly Deny: Series
    readonly Hitl: Series
  }
  readonly whole: {
    readonly p50: Series
    readonly p99: Series
  }
  readonly gateway: {
    readonly p50: Series
    readonly p99: Series
  }
  readonly gauges: {
    readonly held: Series
    readonly oldestSeconds: Series
    readonly circuitsOpen: Series
    readonly inFlight: Series
  }
  readonly now: {
    readonly held: number
    readonly oldestSeconds: number
    readonly circuitsOpen: number
    readonly inFlight: number
  }
  readonly denials: {
    readonly rules: readonly {
      readonly name: string
      readonly count: number
    }[]
    readonly hosts: readonly {
      readonly name: string
      readonly count: number
    }[]
    readonly agents: readonly {
      readonly id: string
      readonly name: string
      readonly count: number
    }[]
  }
}

export interface PastRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly reason: string
  readonly agentId: string
  readonly timestamp: string
  readonly expiresAt: string
  readonly status: HitlStatus
  readonly bodyBytes: number
  readonly digest: string
  readonly agentName?: string | null
  readonly ownerId?: string
  readonly host?: string
  readonly policyName?: string | null
  readonly policyVersion?: string | null
  readonly rule?: string | null
  readonly ruleReason?: string | null
  readonly title?: string | null
  readonly operation?: string | null
  readonly matched?: readonly Readonly<Record<string, unknown>>[]
  readonly risk?: Readonly<Record<string, unknown>> | null
  readonly digests?: {
    readonly query: string
    readonly fields: string
    readonly body: string
  }
  readonly findings?: Readonly<Record<string, number>>
  readonly waitedSeconds?: number
  readonly approvalsNeeded?: number
  readonly approvedBy?: readonly string[]
  readonly people?: Readonly<Record<string, string>>
  readonly decidedBy: string | null
  readonly replay: Replay
  readonly attempt: number
  readonly decidedAt: string | null
  readonly comment: string | null
  readonly responseStatus: number | null
}

export interface PastRequestPage {
  readonly items: readonly PastRequest[]
  readonly page: number
  readonly pageSize: number
  readonly totalCount: number
  readonly next: string | null
}

export interface Policy {
  readonly name: string
  readonly description: string
  readonly owner: string
  readonly default: Effect
  readonly timezone?: string
  readonly onUnreadable?: string
  readonly shadowOf?: string
  readonly rules: readonly Rule[]
  readonly hits?: readonly {
    readonly rule: string | null
    readonly count: number
  }[]
  readonly shadow?: readonly {
    readonly rule: string
    readonly would: Effect
    readonly count: number
  }[]
  readonly CreatedOn: string
  readonly version: string
  readonly source: PolicySource
}

export interface PolicyAssignment {
  readonly policyName: string | null
}

export interface PolicyInput {
  readonly name: string
  readonly description?: string
  readonly owner?: string
  readonly default?: Effect
  readonly timezone?: string
  readonly onUnreadable?: 'failSafe' | 'match' | 'noMatch'
  readonly shadowOf?: string
  readonly rules?: readonly Rule[]
}

export interface PolicyPage {
  readonly items: readonly PolicySummary[]
  readonly page: number
  readonly pageSize: number
  readonly totalCount: number
}

export type PolicySource = 'config' | 'file' | 'api'

export interface PolicySummary {
  readonly name: string
  readonly policyName: string
  readonly description: string
  readonly owner: string
  readonly default: Effect
  readonly ruleCount: number
  readonly source: PolicySource
}

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code:
    | 'invalid_request'
    | 'token_misplaced'
    | 'browser_refused'
    | 'invalid_target'
    | 'invalid_body'
    | 'invalid_parameter'
    | 'invalid_policy'
    | 'unauthenticated'
    | 'agent_revoked'
    | 'agent_quarantined'
    | 'agent_inactive'
    | 'mcp_post_only'
    | 'mcp_mismatch'
    | 'policy_denied'
    | 'policy_error'
    | 'egress_denied'
    | 'credential_conflict'
    | 'forbidden'
    | 'own_request'
    | 'foreign_origin'
    | 'hitl_denied'
    | 'not_found'
    | 'method_not_allowed'
    | 'already_exists'
    | 'already_decided'
    | 'withdrawn'
    | 'last_admin'
    | 'wrong_state'
    | 'read_only'
    | 'too_many_keys'
    | 'in_use'
    | 'digest_mismatch'
    | 'not_as_seen'
    | 'body_too_large'
    | 'unsupported_media_type'
    | 'expectation_failed'
    | 'websocket_not_supported'
    | 'rate_limited'
    | 'agent_busy'
    | 'hitl_queue_full'
    | 'hitl_storage_full'
    | 'too_many_logins'
    | 'headers_too_large'
    | 'request_timeout'
    | 'internal'
    | 'upstream_failed'
    | 'tool_list_unreadable'
    | 'answer_not_kept'
    | 'circuit_open'
    | 'upstream_busy'
    | 'busy'
    | 'review_pending'
    | 'store_unavailable'
    | 'fenced'
    | 'draining'
    | 'upstream_timeout'
    | 'http_version_not_supported'
    | 'loop_detected'
  readonly detail: string
  readonly message?: string
  readonly error?:
    | {
        readonly type?:
          | 'authentication_error'
          | 'permission_error'
          | 'not_found_error'
          | 'rate_limit_error'
          | 'invalid_request_error'
          | 'api_error'
        readonly code: string | number
        readonly message: string
        readonly status?: string
      }
    | string
  readonly requestId: string
  readonly errors?: readonly FieldError[]
  readonly failure?: string
  readonly created?: string
  readonly hitlId?: string
  readonly hitlStatus?: HitlStatus
  readonly replay?: Replay
  readonly attempt?: number
  readonly decidedBy?: string | null
  readonly decidedAt?: string | null
  readonly comment?: string | null
  readonly responseStatus?: number | null
}

export interface RegisteredAgent {
  readonly id: string
  readonly name: string
  readonly clientSecret?: string
  readonly warnings?: readonly string[]
}

export type Replay = 'inFlight' | 'completed' | 'failed' | 'unknown' | null

export type Role = 'agent' | 'reviewer' | 'auditor' | 'admin'

export interface RoleAssignment {
  readonly roles: readonly Role[]
}

export interface Rule {
  readonly name: string
  readonly priority?: number
  readonly effect: Effect
  readonly mode?: 'enforce' | 'shadow'
  readonly riskExempt?: boolean
  readonly reason?: string
  readonly title?: string
  readonly approvals?: number
  readonly waitSeconds?: number
  readonly whenUndecided?: 'accepted' | 'refused'
  readonly silence?: readonly {
    readonly code: string
    readonly reason: string
  }[]
  readonly conditions: readonly Condition[]
}

export type Series = readonly (number | null)[]

export interface Token {
  readonly accessToken: string
  readonly token: string
  readonly tokenType: 'Bearer'
  readonly expiresAt: string
}

export interface TokenRequest {
  readonly agentId?: string
  readonly clientSecret?: string
  readonly externalToken?: string
  readonly console?: boolean
}

export interface VerdictOutcome {
  readonly id: string
  readonly outcome: 'denied' | 'counted' | 'sent' | 'refused'
  readonly upstreamStatus?: number
  readonly status?: number
  readonly code?: string
  readonly detail?: string
}

export interface Verdicts {
  readonly verdict: 'approve' | 'deny'
  readonly comment?: string
  readonly items: readonly {
    readonly id: string
    readonly digest: string
  }[]
}
