import type { ReadBody } from '../body/kind.ts'
import { Pairs } from '../parts/pairs.tsx'
import { Text } from '../parts/text.tsx'
import { whatOf } from '../queue/what.tsx'
import { hrefOf } from '../router.ts'
import { BodyViews } from './body.tsx'
import { lastAnswer } from './sent-answer.ts'

/** What the upstream answered to the last approval, folded. Text alone, like everything that others wrote. */
export function LastAnswer() {
  const answer = lastAnswer.value
  if (answer === undefined) return null
  const { view, status, headers, body, note } = answer
  const fields = Object.entries(headers)
  return (
    <section class="answer" aria-label="Answer to the last approval">
      <details>
        <summary>
          Sent: <Text value={whatOf(view) ?? `${view.method} ${view.url}`} limit={120} />. The upstream answered{' '}
          <strong>{status}</strong>.
        </summary>
        <p>
          <a href={hrefOf('requests', view.id)}>The request</a>
        </p>
        {note !== undefined && <p class="notice warn">{note}</p>}
        {body === undefined ? <p role="status">Reading the body…</p> : <AnswerBody body={body} />}
        <Pairs caption={`${fields.length} header fields`} pairs={fields} kind="exact" />
      </details>
      <button
        type="button"
        class="plain"
        aria-label="Dismiss the answer"
        onClick={() => (lastAnswer.value = undefined)}
      >
        ×
      </button>
    </section>
  )
}

const AnswerBody = ({ body }: { readonly body: ReadBody }) =>
  body.bytes.length === 0 ? <p>The answer has no body.</p> : <BodyViews body={body} name="answer" />
