/** What is said aside: to screen readers, and in a corner of the screen. */
import { signal } from '@preact/signals'

export interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'plain' | 'good' | 'bad'
}

export const spoken = signal('')
export const toasts = signal<readonly Toast[]>([])

const shownMs = 6_000
let next = 0

/** Read out by screen readers, when they have finished what they say. */
export function announce(text: string): void {
  // The same text again is a new announcement.
  spoken.value = spoken.peek() === text ? `${text}\u00a0` : text
}

export function toast(text: string, tone: Toast['tone'] = 'plain'): void {
  const id = ++next
  toasts.value = [...toasts.peek().slice(-3), { id, text, tone }]
  announce(text)
  setTimeout(() => dismiss(id), shownMs)
}

export function dismiss(id: number): void {
  toasts.value = toasts.peek().filter(one => one.id !== id)
}
