import type { AgentStatus } from '../types.ts'
import { Mark, type Tone } from './marks.tsx'

const tones: Readonly<Record<AgentStatus, Tone>> = {
  Active: 'good',
  Inactive: 'plain',
  Quarantined: 'warn',
  Revoked: 'bad',
}

export function Status({ status }: { readonly status: AgentStatus }) {
  return <Mark text={status} tone={tones[status]} />
}

export function Trust({ score }: { readonly score: number }) {
  return (
    <span class="trust">
      <meter min={0} max={1} value={score} aria-label="Trust" /> {score.toFixed(2)}
    </span>
  )
}
