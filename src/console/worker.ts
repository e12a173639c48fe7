/** Shows pushes, and opens the link of the one that is pressed. It stands below `assets/`: it controls no page and no call. */

interface Push {
  readonly agent?: string
  readonly rule?: string
  readonly id?: string
  /** Of several requests that came at once. */
  readonly count?: number
}

/** What this worker uses of its global scope: its types contradict those of pages. */
interface Scope {
  readonly location: Location
  readonly registration: ServiceWorkerRegistration
  readonly clients: { openWindow(url: string): Promise<unknown> }
  addEventListener(type: 'push', take: (event: Lasting & { readonly data: Body | null }) => void): void
  addEventListener(type: 'notificationclick', take: (event: Lasting & { notification: Notification }) => void): void
}

interface Lasting {
  waitUntil(work: Promise<unknown>): void
}

interface Body {
  json(): Push
}

declare const self: Scope

self.addEventListener('push', event => {
  const { agent = 'an agent', rule, id, count } = event.data?.json() ?? {}
  const several = `${count} more requests wait for review`
  const one = rule === undefined ? agent : `${agent}\n${rule}`
  const options = { body: count === undefined ? one : several, tag: id ?? 'more', data: id }
  event.waitUntil(self.registration.showNotification('Review needed', options))
})

self.addEventListener('notificationclick', event => {
  event.notification.close()
  const id: unknown = event.notification.data
  const page = typeof id === 'string' ? `requests/${encodeURIComponent(id)}` : 'requests'
  event.waitUntil(self.clients.openWindow(new URL(`../#/${page}`, self.location.href).href))
})

export {}
