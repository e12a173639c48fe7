import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type Failure, query } from '../api.ts'
import { typed } from '../make/order.ts'
import { Choice } from '../parts/choice.tsx'
import { makeHref } from '../parts/make-link.ts'
import { useRead } from '../parts/read.ts'
import { Failed } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { search } from '../router.ts'
import type { AgentPage, Explanation } from '../types.ts'
import { type Draft, draftOf, requestOf } from './draft.ts'
import { Explained } from './explained.tsx'
import { RequestForm } from './request-form.tsx'

/** Why a request comes out as it does: one that is typed, pasted, or taken from the history. Nothing is sent to an upstream. */
export function Explain({ name }: { readonly name: string }) {
  const [draft, setDraft] = useState<Draft>()
  const [answer, setAnswer] = useState<Explanation | Failure>()
  const [isBusy, setBusy] = useState(false)
  const place = useRef<HTMLElement>(null)

  const explain = async (given: Draft) => {
    setBusy(true)
    const path = `/policies/${encodeURIComponent(name)}/explain`
    const explained = await call<Explanation>('POST', path, { body: requestOf(given) })
    setBusy(false)
    setAnswer(explained.ok ? explained.data : explained.failure)
  }
  useEffect(() => {
    void draftOf().then(given => {
      setDraft(given)
      if (given.url === '') return
      place.current?.scrollIntoView()
      void explain(given)
    })
  }, [])

  return (
    <section class="card" aria-labelledby="explain" ref={place}>
      <h2 id="explain">Explain a request</h2>
      {draft !== undefined && (
        <>
          {draft.agent !== undefined && (
            <p class="hint">
              As <Text value={draft.agent.name} limit={120} />, as it stands now. Values that were redacted are not
              known here.
            </p>
          )}
          <RequestForm draft={draft} onInput={setDraft} onEnter={() => void explain(draft)} />
          <p class="actions">
            <button
              type="button"
              class="primary"
              disabled={isBusy || draft.url === ''}
              onClick={() => void explain(draft)}
            >
              {isBusy ? 'Asking…' : 'Explain'}
            </button>
          </p>
        </>
      )}
      <div aria-live="polite">
        {answer !== undefined && ('code' in answer ? <Failed failure={answer} /> : <Explained explanation={answer} />)}
      </div>
      {draft !== undefined && answer !== undefined && !('code' in answer) && <MakeFrom draft={draft} policy={name} />}
    </section>
  )
}

/** A held request by its id. One that was typed needs an agent, whose requests the rule takes. */
function MakeFrom({ draft, policy }: { readonly draft: Draft; readonly policy: string }) {
  const held = search.value.get('request')
  const agents = useRead<AgentPage>('/agents?pageSize=200')
  if (held !== null) {
    return (
      <p>
        <a href={makeHref({ hitl: held })}>Make from this</a>
      </p>
    )
  }
  const mine = (agents.data?.items ?? []).filter(({ policyName }) => policyName === policy)
  if (mine.length === 0) return null
  const open = (agent: string) => {
    typed.value = draft
    location.hash = `/make${query({ agent })}`
  }
  return (
    <Choice
      label="Make a rule or a test from this, for"
      value=""
      options={[['', 'choose an agent'], ...mine.map(({ id, name }) => [id, name] as const)]}
      onChange={open}
    />
  )
}
