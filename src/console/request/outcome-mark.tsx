import { Mark, type Tone } from '../parts/marks.tsx'
import { type Decided, outcomeOf } from './outcome.ts'

/** What became of a request. @param text in words; those of its state if absent */
export const OutcomeMark = ({ of, text }: { readonly of: Decided; readonly text?: string | undefined }) => (
  <Mark text={text ?? outcomeOf(of)} tone={toneOf(of)} />
)

function toneOf({ status, replay }: Decided): Tone {
  if (status === 'Pending') return replay === 'unknown' ? 'warn' : 'accent'
  if (status === 'Denied') return 'bad'
  if (status !== 'Approved') return 'plain'
  return replay === 'failed' || replay === 'unknown' ? 'warn' : 'good'
}
