/** Notifications of the desktop, when the reviewer asked for them. */
import { toast } from './notices.ts'
import { notifications } from './prefs.ts'

export async function askForNotifications(): Promise<void> {
  if (notifications.value) {
    notifications.value = false
    return
  }
  if (!('Notification' in window)) {
    toast('This browser has no notifications.', 'bad')
    return
  }
  const answer = await Notification.requestPermission()
  notifications.value = answer === 'granted'
  if (answer !== 'granted') toast('The browser does not allow notifications from this page.', 'bad')
}

/** @param text nothing that an agent wrote: it leaves the page */
export function notify(text: string): void {
  if (!notifications.value || document.visibilityState === 'visible') return
  // The same tag replaces the notification before.
  new Notification('Agent Gateway', { body: text, tag: 'waiting' })
}
