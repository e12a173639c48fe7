/** Where the text in the editor comes from. */
import { Copy } from '../parts/copy.tsx'
import { save } from '../parts/save.ts'
import type { Policy } from '../types.ts'
import { diffLines, patchOf } from './diff.ts'

interface ReturnedProps {
  /** Whether another version is in force than the one that the author began from. */
  readonly isOld: boolean
  /** Whether a rule that was made just now could not be added to it. */
  readonly lacksRule: boolean
  readonly onDiscard: () => void
}

/** The text is what the author left here before. */
export function Returned({ isOld, lacksRule, onDiscard }: ReturnedProps) {
  return (
    <div class={isOld || lacksRule ? 'notice warn' : 'notice'}>
      <p>
        This is what you typed before. It is not published, and kept until you close this tab.
        {isOld && ' Another version was published since you began: look at what differs from it before you publish.'}
      </p>
      {lacksRule && (
        <p>
          The rule that was made is not in it: it has another rule of that name, or is no policy yet. Discard it to
          begin with the rule, or give the rule another name on the page that made it.
        </p>
      )}
      <p class="actions">
        <button type="button" class="danger" onClick={onDiscard}>
          Discard it
        </button>
      </p>
    </div>
  )
}

interface OfFileProps {
  readonly policy: Policy
  readonly text: string
  readonly base: string
}

/** A policy of a file stays in the file: the change is offered to be made there. */
export function OfFile({ policy: { name, source }, text, base }: OfFileProps) {
  const patch = () => {
    const content = patchOf(`${name}.json`, diffLines(`${base}\n`, `${text}\n`))
    save(new Blob([content], { type: 'text/plain' }), `${name}.patch`)
  }
  return (
    <div class="notice stack">
      <p>
        This policy comes from {source === 'file' ? 'a file of Policy:Directory' : 'the settings'}: change it there.
        JSON is YAML, too, so the whole text may replace it.
      </p>
      <p class="actions">
        <Copy text={text} name="Copy the policy" />
        <button type="button" disabled={text === base} onClick={patch}>
          Download the patch
        </button>
      </p>
    </div>
  )
}
