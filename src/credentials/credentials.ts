import type { Origin } from '../base/origin.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { Target } from '../base/target.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import type { UpstreamSetting } from '../config/upstreams.ts'
import type { Clock } from '../runtime/clock.ts'
import { keyText } from '../storage/credentials.ts'
import { keyFor } from './accounts.ts'
import { type AwsMessage, type AwsSigned, keysIn, scopeOf, withSignature } from './aws.ts'
import { ClockWatch } from './clock-watch.ts'
import { applies, type CredentialAgent, type CredentialEntry, entryOf } from './entries.ts'
import { type CredentialPlace, secretsIn, sendsItself, withCredential } from './placement.ts'
import { wantedScopes } from './scopes.ts'
import type { SecretPlaces } from './secrets.ts'
import type { AwsScope } from './sigv4.ts'
import type { FreshCredential } from './state.ts'
import { refuseSubject, type SubjectToken } from './subject-token.ts'
import type { CredentialTable, WantedCredential } from './table.ts'

/** A request that is about to be sent, as far as it says which credentials it gets. */
export interface CredentialRequest {
  readonly target: Target
  readonly agent: CredentialAgent
  /** Header fields of the agent, flat: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  /** Names among them that are not sent upstream anyway, as `foldName` writes them. */
  readonly tokenNames: readonly string[]
  /** The token that it came with, if others may have credentials for it. */
  readonly subjectToken?: SubjectToken | undefined
  readonly isApproved?: boolean
}

/** A credential that a request gets. It stays as it was picked when the settings change before the request is sent. */
export interface PickedCredential
  extends Omit<WantedCredential, 'name'>,
    Pick<CredentialEntry, 'place' | 'source' | 'value' | 'prefix'> {
  /** Which token it is (`keyText`); of another subject it is never sent. Undefined for a value that stands in `Upstreams` itself. */
  readonly name: string | undefined
  /** What is signed, for keys of AWS. */
  readonly scope: AwsScope | undefined
  /** What was added to the request when it was sent; never logged or stored. */
  sent: { readonly secrets: readonly string[]; readonly version: number } | undefined
}

/** What the gateway adds for some upstreams, so that agents need not hold their keys. */
export interface Credentials {
  /** No settings give any, so there is nothing to pick unless a rule has chosen one. */
  readonly areNone: boolean
  /**
   * Those that a request gets; undefined when there is none. A refusal when the agent sends one of their fields itself, or when
   * none is the one that its rule has chosen.
   */
  pick(request: CredentialRequest, chosen?: string | null): readonly PickedCredential[] | undefined | Refusal
  /**
   * Waits until each has a value that may be sent; a refusal when one has none.
   *
   * @param isOnce the request is never sent twice, so its values must last a minute
   */
  ready(picked: readonly PickedCredential[], isOnce: boolean): Refusal | undefined | Promise<Refusal | undefined>
  /**
   * The request with the values as they are now. Called right before it is sent, once they are ready. Undefined when one has
   * ended since, or was taken back: then nothing may be sent before they are ready again.
   */
  place<M extends AwsMessage>(picked: readonly PickedCredential[], message: M, origin: Origin): M | undefined
  /** Whether none of the values that were placed has been taken back, or replaced, since. */
  areLatest(picked: readonly PickedCredential[]): boolean
  /**
   * Before a request is held: what it gets for the token of its agent is had now, since it comes without the token later. A
   * refusal when it cannot be had.
   */
  hold(picked: readonly PickedCredential[]): Refusal | undefined | Promise<Refusal | undefined>
  /** The rights of an agent have changed: nothing that was had for its tokens is known from here on. */
  forget(agentId: string): void
  /** Forgets what was had for tokens that have ended. Call about every second. */
  sweep(): void
  /**
   * After an answer with status 403: people are told of scopes that the upstream wants. A refusal when a person can grant them.
   *
   * @param fields those of the answer
   */
  noteWanted(picked: readonly PickedCredential[], fields: readonly string[], host: string): Refusal | undefined
  /** As well: what people must be told of clocks that differ, if that is why a signature was refused. */
  noteClock(picked: readonly PickedCredential[], fields: readonly string[], host: string): string | undefined
  /** After an answer with status 401: whether there is another value now, so that the request may be sent once more. */
  renew(picked: readonly PickedCredential[]): Promise<boolean>
  /**
   * Reads the values of other entries. Rejects when one is missing or cannot be sent; nothing changes until the result is
   * called.
   *
   * @throws StartupError
   */
  prepare(upstreams: readonly UpstreamSetting[]): Promise<() => void>
}

export interface CredentialOptions extends SecretPlaces {
  readonly clock: Pick<Clock, 'now' | 'steady'>
  readonly Upstreams: readonly UpstreamSetting[]
  readonly Credentials: readonly CredentialSetting[]
  readonly table: CredentialTable
}

/**
 * Reads the values of the configured entries.
 *
 * @throws StartupError that names the entry, never the value
 */
export async function openCredentials(options: CredentialOptions): Promise<Credentials> {
  const { table } = options
  const read = (upstreams: readonly UpstreamSetting[]) =>
    Promise.all(upstreams.map((setting, index) => entryOf(setting, index, options)))
  let entries = await read(options.Upstreams)

  const ready: Credentials['ready'] = (picked, isOnce) => {
    for (const one of picked) {
      const found = isNamed(one) ? table.ready(one, isOnce) : undefined
      if (found !== undefined)
        return found instanceof Promise ? found.then(late => late ?? ready(picked, isOnce)) : found
    }
    return undefined
  }
  const credentials: Credentials & { areNone: boolean } = {
    areNone: entries.length === 0,
    pick: (request, chosen) => (chosen ? pickChosen(entries, request, chosen) : pick(entries, request)),
    ready,
    place(picked, message, origin) {
      const states = statesOf(picked, table)
      if (states === undefined) return undefined
      let placed = message
      for (const [at, state] of states.entries()) {
        const one = picked[at]!
        const { secrets, changed } = placeOne(one, state, { message: placed, origin, now: options.clock.now() })
        one.sent = { secrets, version: state.version }
        if (one.name !== undefined) table.noteUse(one.name)
        placed = { ...placed, ...changed }
      }
      return placed
    },
    areLatest: picked => picked.every(one => !isNamed(one) || !one.sent || table.versionOf(one) === one.sent.version),
    hold: picked =>
      ready(
        picked.filter(({ subject }) => subject !== undefined),
        false,
      ),
    forget: agentId => table.forget(agentId),
    sweep: () => table.sweep(),
    ...createNotes(options),
    async renew(picked) {
      const asked = picked.flatMap(one => (isNamed(one) && one.sent ? [table.renew(one, one.sent.version)] : []))
      const isNew = (await Promise.all(asked)).some(Boolean)
      // The life of another one may have ended meanwhile.
      return isNew && picked.every(one => !isNamed(one) || table.fresh(one) !== undefined)
    },
    async prepare(upstreams) {
      const next = await read(upstreams)
      return () => {
        entries = next
        credentials.areNone = next.length === 0
      }
    },
  }
  return credentials
}

type Picked = ReturnType<Credentials['pick']>

/** Those of the credential that a rule has chosen. */
function pickChosen(entries: readonly CredentialEntry[], request: CredentialRequest, chosen: string): Picked {
  const named = entries.filter(({ name }) => name === chosen)
  const none = `Upstreams gives the credential ${chosen} to no request like this.`
  return pick(named, request) ?? refuse('credential_conflict', none)
}

function pick(entries: readonly CredentialEntry[], request: CredentialRequest): Picked {
  const picked: PickedCredential[] = []
  const taken: string[] = []
  for (const entry of entries) {
    const { setting, place, placeKey, credential, source, value, prefix, signer, isForToken } = entry
    // Of several entries for one place the first counts.
    if (taken.includes(placeKey) || !applies(entry, request)) continue
    taken.push(placeKey)
    const scope = signer && scopeOf(request, signer)
    if (isRefusal(scope)) return scope
    if (scope === undefined && setting.Override !== 'Replace' && sendsItself(place, request)) {
      if (setting.Override === 'Refuse') return conflict(place)
      continue
    }
    const name = credential && keyText(keyFor(credential, request.agent))
    const subject = isForToken ? request.subjectToken : undefined
    if (isForToken && subject === undefined) return refuseSubject(source, request.isApproved === true)
    const agentId = request.agent.id
    picked.push({ place, name, agentId, source, value, prefix, scope, subject, state: undefined, sent: undefined })
  }
  return picked.length === 0 ? undefined : picked
}

const isNamed = (picked: PickedCredential): picked is PickedCredential & WantedCredential => picked.name !== undefined

function createNotes({ table, clock }: CredentialOptions): Pick<Credentials, 'noteWanted' | 'noteClock'> {
  const clocks = new ClockWatch(clock)
  return {
    noteWanted(picked, fields, host) {
      const scopes = wantedScopes(fields)
      const bearer = scopes.length === 0 ? undefined : picked.find(isBearer)
      return bearer && isNamed(bearer) ? table.noteWanted(bearer, scopes, host) : undefined
    },
    noteClock(picked, fields, host) {
      const signer = picked.find(({ scope }) => scope !== undefined)
      return signer && clocks.note(signer.source, fields, host)
    },
  }
}

/** What a challenge for Bearer is about. */
const isBearer = ({ place, prefix }: PickedCredential): boolean =>
  place.query === undefined && /^authorization$/i.test(place.header) && /^bearer $/i.test(prefix)

type SentState = Pick<FreshCredential, 'value' | 'version'>

/** The values to send, of all or none: what was sent before stays known, since its answer may still show it. */
function statesOf(picked: readonly PickedCredential[], table: CredentialTable): readonly SentState[] | undefined {
  const found: SentState[] = []
  for (const one of picked) {
    const state = isNamed(one) ? table.sendable(one) : { value: one.value, version: 0 }
    if (state === undefined) return undefined
    found.push(state)
  }
  return found
}

/** A credential in its place; what it shows to the upstream must not come back. */
function placeOne(
  { place, prefix, scope }: PickedCredential,
  state: Pick<FreshCredential, 'value'>,
  { message, origin, now }: { readonly message: AwsMessage; readonly origin: Origin; readonly now: number },
): { readonly secrets: readonly string[]; readonly changed: AwsSigned } {
  const { value } = state
  if (scope === undefined)
    return { secrets: secretsIn(place, prefix, value), changed: withCredential(message, place, prefix + value) }
  const keys = keysIn(state)
  // As the Host field has it.
  const host = origin.key.slice(`${origin.scheme}://`.length)
  return { secrets: [keys.sessionToken ?? ''], changed: withSignature(message, keys, { scope, host, now }) }
}

function conflict({ header, query }: CredentialPlace): Refusal {
  const what = query === undefined ? header : `the query parameter ${query}`
  return refuse('credential_conflict', `The gateway sets ${what} for this upstream. Leave it out.`)
}
