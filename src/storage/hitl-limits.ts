/** Bounds of what is held, in the storage contract. */
export interface HitlLimits {
  readonly maxPending: number
  readonly maxPendingOfAgent: number
  /** Stored of requests, decided ones too. Only a new request is refused for them: an answer is kept in any case. */
  readonly maxBytes: number
  readonly maxBytesOfAgent: number
  /** A request joins only requests that were decided after this time. */
  readonly joinsSince: number
}

export type Full = 'queueFull' | 'agentQueueFull' | 'bytesFull' | 'agentBytesFull'
