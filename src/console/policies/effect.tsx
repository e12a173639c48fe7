import { Mark, type Tone } from '../parts/marks.tsx'

const tones: Readonly<Record<string, Tone>> = { Allow: 'good', Deny: 'bad', Hitl: 'accent' }

export function EffectMark({ effect }: { readonly effect: string }) {
  return <Mark text={effect} tone={tones[effect] ?? 'plain'} />
}
