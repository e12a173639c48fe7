import { useId } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { Choice } from '../parts/choice.tsx'
import { Copy } from '../parts/copy.tsx'
import { Facts } from '../parts/facts.tsx'
import { Frame } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { Method } from '../parts/marks.tsx'
import { PolicyName } from '../parts/policy-name.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { Difference } from '../policies/difference.tsx'
import { EffectMark } from '../policies/effect.tsx'
import { effects } from '../policies/effects.ts'
import { hrefOf, search, setSearch } from '../router.ts'
import { isAdmin, mayRead } from '../session.ts'
import { plural } from '../text.ts'
import type { Effect } from '../types.ts'
import { GrantPart } from './grant.tsx'
import { type Made, useMade } from './made.ts'
import { type Order, orderOf, queryOf, typed, valuesOf } from './order.ts'
import { Parts } from './parts.tsx'
import { overtaken } from './priority.ts'

/** A rule, a test or a grant from one request: nothing is put in force here. */
export const MakePage: Page = () => {
  const order = orderOf(search.value)
  const isGone = order.hitl === undefined && order.shape === undefined && typed.value === undefined
  return (
    <Frame title="Make from this">
      {isGone ? (
        <Empty title="There is no request to make something from">
          <p>
            A request that was typed is not kept. Explain it again, or begin at a request of the history or of an agent.
          </p>
          <p>
            <a href="#/history">History</a>
          </p>
        </Empty>
      ) : (
        <FromRequest order={order} />
      )}
    </Frame>
  )
}

function FromRequest({ order }: { readonly order: Order }) {
  const { made, failure, isCurrent } = useMade(order)
  const failed = failure && <Failed failure={{ ...failure, detail: detailOf(failure) }} />
  if (made === undefined) return failed ?? <Loading />
  const { view, agent } = made.source
  return (
    <div class="stack" aria-busy={!isCurrent}>
      <Seen made={made} />
      {failed}
      <RulePart made={made} asked={order} />
      <TestPart made={made} />
      <GrantPart view={view} agentId={agent?.id} />
    </div>
  )
}

/** A refusal of what was asked says why in its list. */
function detailOf({ detail, problem: { errors = [] } }: Failure): string {
  return errors.length === 0 ? detail : errors.map(({ field, message }) => `${field} ${message}`).join('; ')
}

const change = (order: Order, changes: Partial<Order>) => setSearch(valuesOf({ ...order, ...changes }))

function Seen({ made: { source, draft } }: { readonly made: Made }) {
  const { view, agent } = source
  const url = view?.url ?? draft.request?.url ?? ''
  const agentId = view?.agentId ?? agent?.id
  return (
    <section class="card" aria-label="What was seen">
      <p class="record-what">
        <Method name={view?.method ?? draft.request?.method ?? 'GET'} />{' '}
        {view === undefined ? (
          <Text value={url} limit={600} />
        ) : (
          <Text value={url} limit={600} href={hrefOf('requests', view.id)} />
        )}
      </p>
      <Facts
        facts={[
          [
            'Agent',
            agentId !== undefined && (
              <Text
                value={agent?.name ?? view?.agentName ?? 'the agent'}
                limit={120}
                href={hrefOf('agents', agentId)}
              />
            ),
          ],
          [
            'Policy',
            agent === undefined ? undefined : agent.policyName === null ? (
              'none'
            ) : (
              <PolicyName name={agent.policyName} />
            ),
          ],
          [
            'Decided now',
            draft.decision === null ? undefined : (
              <>
                <EffectMark effect={draft.decision} /> by <Text value={draft.decidedBy ?? 'the default'} limit={120} />
              </>
            ),
          ],
          [
            view === undefined ? 'Example' : '',
            view === undefined ? 'one of the recorded requests, with values made up' : undefined,
          ],
        ]}
      />
    </section>
  )
}

function RulePart({ made, asked }: { readonly made: Made; readonly asked: Order }) {
  const { source, draft, order } = made
  const { view, policy } = source
  const url = view?.url ?? draft.request?.url ?? ''
  return (
    <section class="card stack" aria-labelledby="rule">
      <h2 id="rule">A rule</h2>
      <Terms asked={asked} order={order} />
      <p>
        It takes requests of this agent alone, and matches <strong>{plural(draft.matches, 'recorded request')}</strong>.
        Open a part to take more.
      </p>
      <Parts
        draft={draft}
        asked={asked.open}
        method={view?.method ?? draft.request?.method ?? 'GET'}
        url={url}
        onOpen={open => change(asked, { open })}
      />
      <p class="hint">
        Values of parameters, of header fields and of fields of the body are not compared: it takes every amount. Add
        such conditions in the editor.
      </p>
      {draft.warnings.map(({ code, message }) => (
        <p key={code} class="notice warn">
          <Text value={`${message} (${code})`} limit={600} />
        </p>
      ))}
      {policy !== undefined && <Overtakes names={overtaken(policy, draft).map(({ name }) => name)} />}
      {draft.difference !== null && (
        <>
          <h3>In the policy of the agent</h3>
          <p>
            Requests like this: <EffectMark effect={draft.decision ?? 'none'} /> → <EffectMark effect={asked.effect} />
            {asked.inShadow && ', once it is no longer in shadow'}
          </p>
          <Difference difference={draft.difference} />
        </>
      )}
      <pre>
        <Text value={draft.yaml} />
      </pre>
      <p class="actions">
        <OpenEditor made={made} />
        <Copy text={draft.yaml} name="Copy the rule" />
      </p>
    </section>
  )
}

interface TermsProps {
  readonly asked: Order
  /** With the priority that it got. */
  readonly order: Order
}

function Terms({ asked, order }: TermsProps) {
  const id = useId()
  return (
    <div class="filters">
      <Choice
        isFilter
        label="Decision"
        value={asked.effect}
        options={effects.map(effect => [effect, effect] as const)}
        onChange={effect => change(asked, { effect: effect as Effect, priority: undefined })}
      />
      <div class="filter">
        <label htmlFor={`${id}-name`}>Name</label>
        <input
          id={`${id}-name`}
          value={asked.name ?? order.name}
          spellcheck={false}
          autocomplete="off"
          onChange={event => change(asked, { name: event.currentTarget.value.trim() || undefined })}
        />
      </div>
      <div class="filter">
        <label htmlFor={`${id}-priority`}>Priority</label>
        <input
          id={`${id}-priority`}
          type="number"
          step={1}
          value={asked.priority ?? order.priority}
          onChange={event => {
            const typed = event.currentTarget.valueAsNumber
            change(asked, { priority: Number.isInteger(typed) ? typed : undefined })
          }}
        />
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={asked.inShadow}
          onChange={event => change(asked, { inShadow: event.currentTarget.checked })}
        />
        In shadow first: it is counted and decides nothing
      </label>
    </div>
  )
}

function Overtakes({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null
  return (
    <p class="notice warn">
      It is asked before stricter rules: where they match too, they decide no more.{' '}
      <Text value={names.slice(0, 10).join(', ')} limit={600} />
      {names.length > 10 && `, and ${names.length - 10} more`}
    </p>
  )
}

/** Where the rule is put into the policy. A reviewer has no policies: the text is handed on. */
function OpenEditor({ made: { order, source } }: { readonly made: Made }) {
  const { agent, policy } = source
  if (!mayRead.value || agent === undefined) {
    return <span class="hint">Give it to somebody who may change policies.</span>
  }
  if (policy === undefined && !isAdmin.value)
    return <span class="hint">The agent has no policy that could have it.</span>
  const page = policy === undefined ? '#/new-policy' : hrefOf('policies', policy.name, 'edit')
  return (
    <a class="button primary" href={page + queryOf(order)}>
      Open in the editor, with its test
    </a>
  )
}

function TestPart({ made: { draft } }: { readonly made: Made }) {
  const { test, redacted, decision } = draft
  return (
    <section class="card stack" aria-labelledby="test">
      <h2 id="test">A test</h2>
      {test === null ? (
        <p class="hint">
          {draft.request === null
            ? 'None can be made: the request has a secret, which a test file must not have.'
            : 'None can be made: the agent has no policy, so that nothing decides now.'}
        </p>
      ) : (
        <>
          <p class="hint">With the decision of now, {decision}. It keeps what holds today from being lost.</p>
          {redacted.length > 0 && (
            <p class="notice warn">
              Without <Text value={redacted.join(', ')} limit={400} />, whose values are secret: conditions on them are
              not tested.
            </p>
          )}
          <pre>
            <Text value={test} />
          </pre>
          <p class="actions">
            <Copy text={test} name="Copy the test" />
          </p>
        </>
      )}
    </section>
  )
}
