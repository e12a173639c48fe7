/**
 * Keeps the focus. The element that has it may go away or be disabled: then the nearest part of the page around it takes
 * it, so that keys and screen readers go on where the person was.
 */

/** Parts of the page that may take it. */
const parts = 'li, form, section, article, dialog, main'

let focused: HTMLElement | undefined
/** What was around it, from the inside. It is known no more when it is gone. */
let around: readonly HTMLElement[] = []
/** A button that is disabled while it works gets the focus back. */
let awaited: { readonly element: HTMLElement; readonly holder: Element } | undefined

export function keepFocus(): void {
  addEventListener('focusin', ({ target }) => {
    if (!(target instanceof HTMLElement) || target === awaited?.holder) return
    focused = target
    awaited = undefined
    around = partsAround(target)
  })
  const watch = new MutationObserver(restore)
  watch.observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] })
}

function partsAround(element: HTMLElement): readonly HTMLElement[] {
  const found: HTMLElement[] = []
  for (let part = element.parentElement?.closest<HTMLElement>(parts); part; ) {
    found.push(part)
    part = part.parentElement?.closest<HTMLElement>(parts)
  }
  return found
}

function restore(): void {
  const { activeElement } = document
  if (awaited?.element.isConnected && !awaited.element.matches(':disabled')) {
    const { element, holder } = awaited
    awaited = undefined
    if (activeElement === holder || activeElement === document.body) element.focus()
    return
  }
  const isLost = activeElement === document.body || activeElement?.matches(':disabled') === true
  if (focused === undefined || !isLost) return
  // A person may have clicked where nothing takes the focus.
  if (focused.isConnected && !focused.matches(':disabled')) return
  const holder = around.find(part => part.isConnected) ?? document.querySelector<HTMLElement>('main')
  if (holder == null) return
  if (focused.isConnected) awaited = { element: focused, holder }
  if (!holder.hasAttribute('tabindex')) holder.tabIndex = -1
  holder.focus({ preventScroll: true })
}
