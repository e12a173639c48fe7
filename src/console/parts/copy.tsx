import { toast } from '../notices.ts'

/** Puts a text into the clipboard. */
export function Copy({ text, name = 'Copy' }: { readonly text: string; readonly name?: string }) {
  const copy = async () => {
    const isDone = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    if (isDone === true) toast('Copied.', 'good')
    else toast('The browser does not allow it: select the text and copy it.', 'bad')
  }
  return (
    <button type="button" onClick={() => void copy()}>
      {name}
    </button>
  )
}

/** A secret that the gateway shows this once. */
export function ShownOnce({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div class="notice warn stack">
      <p>
        <strong>{name}.</strong> It is shown this once: keep it now, for example in the environment of the program.
      </p>
      <p class="secret">
        <code data-first tabIndex={-1}>
          {value}
        </code>
        <Copy text={value} />
      </p>
    </div>
  )
}
