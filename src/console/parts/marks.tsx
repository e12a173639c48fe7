/** A word in a box, its colour by what it means. */
export type Tone = 'plain' | 'good' | 'bad' | 'warn' | 'accent'

export function Mark({ text, tone = 'plain' }: { readonly text: string; readonly tone?: Tone }) {
  return <span class={`mark ${tone}`}>{text}</span>
}

export function Method({ name }: { readonly name: string }) {
  return <span class={`method ${name === 'DELETE' ? 'bad' : ''}`}>{name}</span>
}
