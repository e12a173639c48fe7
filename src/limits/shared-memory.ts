/** Memory shared by all threads of a gateway: limits hold for all of them together. */
export interface SharedMemory {
  readonly rates: SharedArrayBuffer
  /** Tokens leased from the buckets of the fleet; absent when each gateway counts by itself. */
  readonly leases: SharedArrayBuffer | undefined
  /** One number: the gateways of the fleet. */
  readonly gateways: SharedArrayBuffer
  /** What is spent of budgets; undefined without any. */
  readonly spend: SharedArrayBuffer | undefined
  readonly circuits: SharedArrayBuffer
  readonly connections: SharedArrayBuffer
  /** Proxied requests under way, by agent. */
  readonly requests: SharedArrayBuffer
  /** Open tunnels of the forward proxy, by agent. */
  readonly tunnels: SharedArrayBuffer
  /** Bytes of bodies that are held, by agent. */
  readonly heldBytes: SharedArrayBuffer
  readonly metrics: SharedArrayBuffer
  /** Proxied requests under way: one number a thread, which that thread alone writes. */
  readonly inFlight: SharedArrayBuffer
}
