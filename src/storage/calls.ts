/** Calls that ask for held requests, in the storage contract. */
/** How the call that asks for an item goes on. */
export interface HitlCall {
  /** The call waits for the outcome; or its answer says to try again; or its answer has the id, for polling. */
  readonly kind: 'waits' | 'retries' | 'polls'
  /** Hex; the agent can cancel a call that waits with it. */
  readonly cancelKey?: string | undefined
}

export interface EndedCall extends Pick<HitlCall, 'cancelKey'> {
  readonly agentId: string
  readonly now: number
  /** No other call waits for the item in this gateway. */
  readonly isLast: boolean
  /** Its answer said to try again. */
  readonly isAnswered: boolean
}
