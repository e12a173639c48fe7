/** Shortcuts of a single key. They rest while somebody types, while a dialog is open, and when they are switched off. */
import { useLayoutEffect } from 'preact/hooks'
import { shortcuts } from './prefs.ts'

export type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>

/** @param keys by `event.key`, letters in lower case */
export function useKeys(keys: Keys): void {
  // A key acts on what is on the screen, not on what was there before.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (!shortcuts.value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
      const action = Object.hasOwn(keys, key) ? keys[key] : undefined
      if (action === undefined) return
      event.preventDefault()
      action(event)
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  })
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
