import type { ComponentChildren } from 'preact'
import type { Failure } from '../api.ts'

/** Nothing to show, and why. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** What failed, in the words of the gateway. */
export function Failed({ failure, onRetry }: { readonly failure: Failure; readonly onRetry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p>{failure.detail}</p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  )
}

/** What went wrong, said at once. Undefined: nothing. */
export function Problem({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p class="notice bad" role="alert">
      {text}
    </p>
  )
}
