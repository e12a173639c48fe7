/** Pushes to this browser (Web Push), which the person switches on and off. */
import { call, change, type Failure } from './api.ts'
import { digestOf } from './digest.ts'
import workerUrl from './worker.ts?worker&url'

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: () => string },
  ): { createScriptURL(url: string): string }
}

/** Undefined where the browser has none, or the page is neither https nor of this machine. */
const workers = (): ServiceWorkerContainer | undefined =>
  'PushManager' in window ? navigator.serviceWorker : undefined

export const hasPush = (): boolean => workers() !== undefined && 'Notification' in window

/** iPhones have pushes only for pages that are on the home screen. */
export const isPhoneOfApple = (): boolean => /iPhone|iPad/.test(navigator.userAgent)

const scope = (): string => new URL('.', workerUrl).href

/** Only the worker of this build is code for the policy of the page. */
let trusted: string | undefined
function trustedWorker(): string {
  const { trustedTypes } = window as { readonly trustedTypes?: TrustedTypes }
  trusted ??=
    trustedTypes?.createPolicy('worker', { createScriptURL: () => workerUrl }).createScriptURL('') ?? workerUrl
  return trusted
}

const current = async (): Promise<PushSubscription | null> =>
  (await (await workers()?.getRegistration(scope()))?.pushManager.getSubscription()) ?? null

export const isSubscribed = async (): Promise<boolean> => (await current()) !== null

/** Undefined when it is on. Throws a text for people when the browser refuses. */
export async function switchOn(): Promise<Failure | undefined> {
  if ((await Notification.requestPermission()) !== 'granted')
    throw new Error('The browser does not allow notifications.')
  const answer = await call<{ readonly publicKey: string }>('GET', '/console/push')
  if (!answer.ok) return answer.failure
  const registration = await workers()!.register(trustedWorker(), { scope: scope() })
  // One that was made with another key of the gateway cannot be used any more.
  await (await registration.pushManager.getSubscription())?.unsubscribe()
  await untilActive(registration)
  const options = { userVisibleOnly: true, applicationServerKey: answer.data.publicKey }
  const { endpoint, keys } = (await registration.pushManager.subscribe(options)).toJSON()
  const failure = await change('PUT', '/console/push', { body: { endpoint, keys } })
  if (failure !== undefined) await (await current())?.unsubscribe()
  return failure
}

/** The gateway forgets it first. A browser that it knows no more is off as well. */
export async function switchOff(): Promise<Failure | undefined> {
  const subscription = await current()
  if (subscription === null) return undefined
  const failure = await change('DELETE', `/console/push/${await digestOf(subscription.endpoint)}`)
  if (failure !== undefined && failure.status !== 404) return failure
  await subscription.unsubscribe()
  return undefined
}

async function untilActive({ installing, waiting, active }: ServiceWorkerRegistration): Promise<void> {
  const worker = installing ?? waiting
  if (active !== null || worker === null) return
  await new Promise<void>(resolve => {
    worker.addEventListener('statechange', () => {
      if (worker.state === 'activated') resolve()
    })
  })
}
