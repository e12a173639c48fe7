/** What sweeps look for, in the storage contract. */
export interface Deadlines {
  /** Of leases, requests, grants and keys. */
  readonly now: number
  /** Items that were decided before, and messages for webhooks from before. */
  readonly decided: number
  readonly delivered: number
  /** Messages of one webhook. */
  readonly max: number
}

/** Whether there is something to do. */
export interface Due {
  readonly lapse: boolean
  readonly expire: boolean
  readonly prune: boolean
  readonly grants: boolean
  readonly deliveries: boolean
}
