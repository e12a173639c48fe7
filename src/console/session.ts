/**
 * Who is signed in. The token is in memory and in sessionStorage, so that a reload and tabs opened from here keep it. It is
 * renewed while somebody uses the page.
 */
import { computed, signal } from '@preact/signals'
import { call, connectSession, type Failure } from './api.ts'
import { giveDraftsTo } from './drafts.ts'
import { askOthers, connectTabs, tellSignOut } from './tabs.ts'
import type { BudgetHolder, ConsoleSession, HitlSummary, Role, Token } from './types.ts'

export type Session =
  | { readonly kind: 'none' }
  | { readonly kind: 'active'; readonly held: ConsoleSession }
  /** The page stays as it is: what was typed is kept. */
  | { readonly kind: 'over'; readonly agentId: string; readonly why: 'expired' | 'idle' | 'signedOut' }

/** Without use for this long the session is over, milliseconds. */
const idleMs = 30 * 60_000
const checkMs = 15_000
const storageKey = 'session'

export const session = signal<Session>({ kind: 'none' })
export const me = computed(() => (session.value.kind === 'active' ? session.value.held.agent : undefined))
export const mayDecide = computed(() => hasRole('reviewer', 'admin'))
export const mayRead = computed(() => hasRole('auditor', 'admin'))
/** Whether requests of agents with the same owner are the person's own, too. */
const hasOwnersAsOwn = computed(() => session.value.kind === 'active' && session.value.held.fourEyes === 'owner')
export const isAdmin = computed(() => hasRole('admin'))

export function hasRole(...roles: readonly Role[]): boolean {
  return me.value?.roles.some(role => roles.includes(role)) === true
}

/** Why the gateway takes no verdict of this person on such a request, and who may decide it; undefined when it takes one. */
export function ownText({ agentId, ownerId }: Pick<HitlSummary, 'agentId' | 'ownerId'>): string | undefined {
  if (agentId === me.value?.id) return 'This request is your own: another reviewer must decide it.'
  return hasOwnersAsOwn.value && ownerId === me.value?.ownerId
    ? `You have the same owner as the agent, ${ownerId}: a reviewer of another owner must decide this request.`
    : undefined
}

/** Why the gateway takes no raise of this person for one who has a budget; undefined when it takes one. */
export function ownBudgetText({
  of,
  holder,
  holderOwner,
}: Pick<BudgetHolder, 'of' | 'holder' | 'holderOwner'>): string | undefined {
  const { id, ownerId } = me.value ?? {}
  if (of === 'Agent' && holder === id) return 'This budget is your own: another admin must raise it.'
  const isOfOwner = of === 'Owner' ? holder === ownerId : hasOwnersAsOwn.value && holderOwner === ownerId
  return isOfOwner ? `You have the same owner, ${ownerId}: an admin of another owner must raise it.` : undefined
}

let usedAt = Date.now()
let renewing: Promise<void> | undefined

connectSession({
  token: () => (session.value.kind === 'active' ? session.value.held.accessToken : undefined),
  onRejected(token) {
    const held = session.peek()
    if (held.kind === 'active' && held.held.accessToken === token) end('expired')
  },
})

function hold(held: ConsoleSession): void {
  giveDraftsTo(held.agent.id)
  session.value = { kind: 'active', held }
  sessionStorage.setItem(storageKey, JSON.stringify(held))
}

function end(why: 'expired' | 'idle' | 'signedOut'): void {
  const held = session.peek()
  sessionStorage.removeItem(storageKey)
  if (held.kind === 'active') session.value = { kind: 'over', agentId: held.held.agent.id, why }
}

export function signOut(): void {
  end('signedOut')
  tellSignOut()
  // Nothing of this person stays in the page.
  location.hash = '#/'
  location.reload()
}

export async function signInWithCode(code: string): Promise<Failure | undefined> {
  const opened = await call<ConsoleSession>('POST', '/console/sessions', { body: { code }, token: null })
  return take(opened.ok ? opened.data : opened.failure)
}

export const signInWithSecret = (agentId: string, clientSecret: string): Promise<Failure | undefined> =>
  signInWith({ agentId, clientSecret, console: true })

/** @param externalToken of the identity provider, which says whose it is */
export const signInWithToken = (externalToken: string): Promise<Failure | undefined> =>
  signInWith({ externalToken, console: true })

async function signInWith(body: object): Promise<Failure | undefined> {
  const token = await call<Token>('POST', '/tokens', { body, token: null })
  if (!token.ok) return token.failure
  const opened = await call<ConsoleSession>('POST', '/tokens/renew', { token: token.data.accessToken })
  return take(opened.ok ? opened.data : opened.failure)
}

function take(opened: ConsoleSession | Failure): Failure | undefined {
  if ('code' in opened) return opened
  const before = session.peek()
  hold(opened)
  usedAt = Date.now()
  // What another person has on the screen is not for this one.
  if (before.kind === 'over' && before.agentId !== opened.agent.id) location.reload()
  return undefined
}

/** Takes up the session of this tab. Resolves when it is clear whether there is one. */
export async function resume(): Promise<void> {
  const stored = parse(sessionStorage.getItem(storageKey))
  if (stored === undefined || Date.parse(stored.expiresAt) <= Date.now()) {
    askOthers()
    return
  }
  hold(stored)
  await renew()
}

function parse(text: string | null): ConsoleSession | undefined {
  try {
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

connectTabs({
  isSignedIn: () => session.peek().kind === 'active',
  onSignOut: () => end('signedOut'),
})

/** The next token. One renewal at a time. */
function renew(): Promise<void> {
  renewing ??= renewNow().finally(() => {
    renewing = undefined
  })
  return renewing
}

async function renewNow(): Promise<void> {
  const renewed = await call<ConsoleSession>('POST', '/tokens/renew')
  if (renewed.ok) hold(renewed.data)
  // A gateway that restarts is asked again; the token may still be good.
  else if (renewed.failure.status === 403 || renewed.failure.status === 409) end('expired')
}

for (const type of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  addEventListener(type, () => (usedAt = Date.now()), { passive: true, capture: true })
}

setInterval(() => {
  const held = session.peek()
  if (held.kind !== 'active') return
  const left = Date.parse(held.held.expiresAt) - Date.now()
  if (left <= 0) end('expired')
  else if (Date.now() - usedAt > idleMs) end('idle')
  else if (left < 5 * 60_000 && Date.parse(held.held.endsAt) > Date.now()) void renew()
}, checkMs)
