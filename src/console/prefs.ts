/** Preferences of this browser; nothing about anybody. They may be gone at any time. */
import { effect, type Signal, signal } from '@preact/signals'

function preference<T extends string | boolean>(name: string, initial: T): Signal<T> {
  const key = `console.${name}`
  const value = signal(read(key, initial))
  effect(() => {
    const text = JSON.stringify(value.value)
    try {
      localStorage.setItem(key, text)
    } catch {
      // A browser may have no place for it.
    }
  })
  return value
}

function read<T>(key: string, initial: T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(key) ?? 'null')
    // Of the same type as the initial one, checked here.
    return typeof value === typeof initial ? (value as T) : initial
  } catch {
    return initial
  }
}

/** Shortcuts of a single key (WCAG 2.1.4). */
export const shortcuts = preference<boolean>('shortcuts', true)
export const notifications = preference<boolean>('notifications', false)
