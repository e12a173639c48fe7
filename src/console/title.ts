/** The title of the window: how many requests wait, and what the page is. */
import { effect, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { waitingCount } from './queue/store.ts'
import { path } from './router.ts'

/** What the page is; empty until it knows. */
export const pageTitle = signal('')

// One page must not have the title of the one before.
effect(() => {
  void path.value
  pageTitle.value = ''
})

effect(() => {
  const count = waitingCount.value
  const title = pageTitle.value === '' ? 'Agent Gateway' : `${pageTitle.value} · Agent Gateway`
  document.title = count === 0 ? title : `(${count}) ${title}`
})

/** @param text undefined: another part of the page has the title */
export function usePageTitle(text: string | undefined): void {
  const at = path.value
  useLayoutEffect(() => {
    if (text !== undefined) pageTitle.value = text
  }, [text, at])
}
