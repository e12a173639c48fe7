/** Certificates that stand in for those of upstreams, one for each host, made when a connection needs it. */
import { generateKeyPair } from 'node:crypto'
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext } from 'node:tls'
import { promisify } from 'node:util'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import type { Authority } from './authority.ts'

const dayMs = 86_400_000
/** Clocks of clients may be slow. */
const backdatedMs = dayMs
const validMs = 7 * dayMs
/** A leaf of this age is made again, so that every one that is used has days left. */
const renewedAfterMs = 5 * dayMs

export interface LeafParts {
  readonly authority: Authority
  readonly clock: Pick<Clock, 'now'>
  /** 48 random bytes that all threads have, so that a session which one began can be resumed by another. */
  readonly ticketKeys: Buffer
  /** Contexts that are kept, 26 to 43 KiB each, of all agents and of one. */
  readonly maxContexts?: number
  readonly maxContextsEach?: number
}

export interface Leafs {
  /**
   * What a TLS server for the host presents. It rejects only when the system has no memory or no random numbers.
   *
   * @param host a name in lower case, or an address without brackets, which the authority permits
   * @param agentId in whose share a context is kept that must be made
   */
  contextFor(host: string, agentId: string): SecureContext | Promise<SecureContext>
  /** Leafs made so far. */
  readonly minted: number
}

interface Entry {
  readonly context: SecureContext
  /** Milliseconds since the epoch. */
  readonly mintedAt: number
  readonly share: Share
}

/** Hosts whose contexts were made for one agent, the one used least recently first. */
interface Share {
  readonly agentId: string
  readonly hosts: Set<string>
}

/** The wall clock may have been set back since, to a time when the leaf does not yet hold. */
const isFresh = ({ mintedAt }: Entry, now: number): boolean =>
  now < mintedAt + renewedAfterMs && now > mintedAt - backdatedMs / 2

/** Those of node, but SHA-256 first: processors have instructions for it, and a handshake hashes a dozen times. */
const ciphers = `TLS_AES_128_GCM_SHA256:${DEFAULT_CIPHERS.replace('TLS_AES_128_GCM_SHA256:', '')}`

/** One key serves all leafs of a thread: it is in memory only, and a leaf costs one signature. */
export async function createLeafs(parts: LeafParts): Promise<Leafs> {
  const { authority, clock, ticketKeys, maxContexts = 1_000, maxContextsEach = 100 } = parts
  const [{ createLeafWriter }, { privateKey, publicKey }] = await Promise.all([
    import('./x509.ts'),
    promisify(generateKeyPair)('ec', { namedCurve: 'P-256' }),
  ])
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const write = createLeafWriter(authority.certificate, authority.signer, publicKey)
  const shares = new Map<string, Share>()
  const dispose = ({ share: { agentId, hosts } }: Entry, host: string): void => {
    hosts.delete(host)
    if (hosts.size === 0) shares.delete(agentId)
  }
  const entries = new LRUCache<string, Entry>({ max: maxContexts, dispose })
  /** Connections to one host that begin together wait for one leaf. */
  const underWay = new Map<string, Promise<SecureContext>>()
  let minted = 0

  async function mint(host: string, agentId: string): Promise<SecureContext> {
    const now = clock.now()
    const to = Math.min(now + validMs, authority.certificate.validToDate.getTime())
    const leaf = await write(host, { from: now - backdatedMs, to })
    const context = createSecureContext({
      ...{ cert: leaf + authority.chain, key, ticketKeys },
      minVersion: 'TLSv1.2',
      // The curves of node begin with a hybrid that makes a handshake a third dearer.
      ecdhCurve: 'X25519:prime256v1',
      ciphers,
      honorCipherOrder: true,
    })
    minted += 1
    const share = shares.get(agentId) ?? { agentId, hosts: new Set() }
    entries.set(host, { context, mintedAt: now, share })
    shares.set(agentId, share)
    share.hosts.add(host)
    const [oldest = host] = share.hosts
    // An agent that calls ever new hosts pushes out its own alone: those of others are dear to make.
    if (share.hosts.size > maxContextsEach) entries.delete(oldest)
    return context
  }

  return {
    get minted() {
      return minted
    },
    contextFor(host, agentId) {
      const entry = entries.get(host)
      if (entry !== undefined && isFresh(entry, clock.now())) {
        entry.share.hosts.delete(host)
        entry.share.hosts.add(host)
        return entry.context
      }
      const before = underWay.get(host)
      if (before !== undefined) return before
      const minting = mint(host, agentId).finally(() => underWay.delete(host))
      underWay.set(host, minting)
      return minting
    },
  }
}
