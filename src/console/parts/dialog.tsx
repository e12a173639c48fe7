import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** What Ctrl and Enter do. */
  readonly onConfirm?: () => void
  readonly children: ComponentChildren
  /** Must be answered: Esc does not close it. */
  readonly isModal?: boolean
  readonly isWide?: boolean
}

/** A dialog over the page. What is to be read or typed first has `data-first`; no button that sends is ever first. */
export function Dialog({ title, onClose, onConfirm, children, isModal = false, isWide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the next key: until it is open, keys are shortcuts of the page below.
  useLayoutEffect(() => {
    const element = dialog.current
    element?.showModal()
    element?.querySelector<HTMLElement>('[data-first]')?.focus()
    // Gives the focus back to where it was.
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'wide' : undefined}
      aria-labelledby={id}
      onKeyDown={event => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.repeat) return
        event.preventDefault()
        onConfirm?.()
      }}
      onCancel={event => {
        event.preventDefault()
        if (!isModal) onClose()
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}
