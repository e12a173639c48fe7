import { useState } from 'preact/hooks'
import { Choice } from '../parts/choice.tsx'
import { makeHref } from '../parts/make-link.ts'
import { Mark, Method } from '../parts/marks.tsx'
import { useRead } from '../parts/read.ts'
import { useSome } from '../parts/some.tsx'
import { Failed } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { plural, timeText } from '../text.ts'
import type { AgentPage, PolicySimulation } from '../types.ts'
import { type Counterexample, Difference } from './difference.tsx'
import { EffectMark } from './effect.tsx'
import { isMilder } from './effects.ts'
import { type Trial as Tried, useTrial } from './tried.ts'

interface TrialProps {
  readonly text: string
  /** Whether the text is a valid policy. */
  readonly isReady: boolean
  /** Name of the policy in force; undefined: a new one. */
  readonly inForce: string | undefined
  /** On whose requests it is tried at first; undefined: of those that have the policy. */
  readonly agentId: string | undefined
  readonly onTest: (example: Counterexample) => void
}

/** What the text would have made of the requests that were recorded, and how it differs from what is in force. */
export function Trial({ text, isReady, inForce, agentId: given, onTest }: TrialProps) {
  const [agentId, setAgent] = useState(given)
  const [days, setDays] = useState<number>()
  const [withShadow, setShadow] = useState(false)
  const isNew = inForce === undefined
  const isUnchosen = isNew && agentId === undefined
  const { trial, isCurrent } = useTrial(text, isReady && !isUnchosen, { agentId, days, inForce, withShadow })
  const agents = useRead<AgentPage>('/agents?pageSize=200')
  const names = new Map(agents.data?.items.map(({ id, name }) => [id, name]))
  return (
    <section class="card stack" aria-labelledby="trial">
      <h2 id="trial">Try it on what was recorded</h2>
      <div class="filters">
        <Choice
          isFilter
          label="On the requests of"
          value={agentId ?? ''}
          options={[
            ['', isNew ? 'choose an agent' : 'the agents that have this policy'] as const,
            ...(agentId !== undefined && !names.has(agentId) ? [[agentId, agentId] as const] : []),
            ...names,
          ]}
          onChange={value => setAgent(value || undefined)}
        />
        <Choice
          isFilter
          label="That came"
          value={days === undefined ? '' : String(days)}
          options={[
            ['', 'since they are recorded'],
            ['7', 'in the last 7 days'],
            ['1', 'in the last 24 hours'],
          ]}
          onChange={value => setDays(value === '' ? undefined : Number(value))}
        />
        {text.includes('"shadow"') && (
          <label class="check">
            <input type="checkbox" checked={withShadow} onChange={event => setShadow(event.currentTarget.checked)} />
            As if rules in shadow decided
          </label>
        )}
      </div>
      <p class="hint" role="status">
        {statusText(isReady, isCurrent, isUnchosen)}
      </p>
      {trial !== undefined && (
        <div class="stack" aria-busy={!isCurrent}>
          <Found trial={trial} names={names} onTest={onTest} />
        </div>
      )}
    </section>
  )
}

function statusText(isReady: boolean, isCurrent: boolean, isUnchosen: boolean): string {
  if (isUnchosen) return 'No agent has a policy of this name yet. Choose one whose requests to decide.'
  if (!isReady) return 'It is tried when the text has no mistakes and differs from what is in force.'
  return isCurrent ? 'Of the text as it stands. Nothing is sent.' : 'Deciding what was recorded…'
}

interface FoundProps {
  readonly trial: Tried
  readonly names: ReadonlyMap<string, string>
  readonly onTest: (example: Counterexample) => void
}

function Found({ trial: { simulation, difference }, names, onTest }: FoundProps) {
  return (
    <>
      {'code' in simulation ? <Failed failure={simulation} /> : <Simulated found={simulation} names={names} />}
      {difference !== undefined && (
        <>
          <h3>Against what is in force</h3>
          {'code' in difference ? (
            <Failed failure={difference} />
          ) : (
            <Difference difference={difference} onTest={onTest} />
          )}
        </>
      )}
    </>
  )
}

interface SimulatedProps {
  readonly found: PolicySimulation
  readonly names: ReadonlyMap<string, string>
}

function Simulated({ found, names }: SimulatedProps) {
  const { same, unknown, changes, agentsRead, agentsLeftOut, incompleteSince } = found
  const changed = changes.reduce((sum, { count }) => sum + count, 0)
  const all = changed + same + unknown
  return (
    <>
      {all === 0 ? (
        <p class="notice warn">
          Nothing was recorded of {plural(agentsRead, 'agent')}
          {agentsRead === 0 ? ' that have this policy: choose an agent above.' : ' in this time.'}
        </p>
      ) : (
        <p>
          Of {plural(all, 'recorded request')} of {plural(agentsRead, 'agent')}, <strong>{changed}</strong>{' '}
          {changed === 1 ? 'is' : 'are'} decided differently, <strong>{same}</strong> as before, and of{' '}
          <strong>{unknown}</strong> the recording cannot tell.
        </p>
      )}
      {agentsLeftOut > 0 && (
        <p class="notice warn">{plural(agentsLeftOut, 'more agent')} with this policy were not looked at.</p>
      )}
      {incompleteSince !== null && (
        <p class="notice warn">Not complete: requests were not recorded since {timeText(incompleteSince)}.</p>
      )}
      {changes.length > 0 && <Changes changes={changes} names={names} />}
      {unknown > 0 && <Unknown found={found} names={names} />}
      <p class="hint">Risk scores and the policy of Policy:Global are left out: they may hold or deny more.</p>
    </>
  )
}

interface ChangesProps {
  readonly changes: PolicySimulation['changes']
  readonly names: ReadonlyMap<string, string>
}

function Changes({ changes, names }: ChangesProps) {
  const [shown, more] = useSome(changes, 50)
  return (
    <ul class="records" aria-label="Decisions that change">
      {shown.map(({ before, after, rule, count, agents, examples }) => (
        <li key={`${before} ${after} ${rule}`} class="record">
          <span class="rule-head">
            <EffectMark effect={before} /> → <EffectMark effect={after} />
            <span>
              by <Text value={rule ?? 'the default'} limit={200} />
            </span>
            {isMilder(after, before) && <Mark text="milder" tone="warn" />}
          </span>
          <span class="record-side">
            {plural(count, 'request')} of {plural(agents.length, 'agent')}
          </span>
          <ul class="lines">
            {examples.map(example => (
              <li key={`${example.agentId} ${example.shapeId}`}>
                <Requests example={example} names={names} />
              </li>
            ))}
          </ul>
        </li>
      ))}
      {more && <li class="record">{more}</li>}
    </ul>
  )
}

function Unknown({ found: { unknown, unknownExamples }, names }: SimulatedProps) {
  const shown = unknownExamples.reduce((sum, { count }) => sum + count, 0)
  return (
    <section class="stack" aria-label="What the recording cannot tell">
      <h3>What the recording cannot tell</h3>
      <p class="hint">
        {plural(unknown, 'request')} rest on values that were not recorded, such as an amount in the body: of most
        fields values are kept with sampled requests alone. An admin has whole requests of an agent kept for a time, at
        "What it does" of the agent.
      </p>
      <ul class="records">
        {unknownExamples.map(example => (
          <li key={`${example.agentId} ${example.shapeId}`} class="record">
            <span class="record-what">
              <Requests example={example} names={names} />
            </span>
            <span class="record-more">
              {example.fields.length === 0
                ? 'no request could be made of what was recorded'
                : example.fields.map(field => (
                    <span>
                      depends on <Text value={field} limit={120} as="code" />
                    </span>
                  ))}
            </span>
          </li>
        ))}
      </ul>
      {shown < unknown && <p class="hint">And {plural(unknown - shown, 'request')} of other kinds.</p>}
    </section>
  )
}

interface RequestsProps {
  readonly example: PolicySimulation['changes'][number]['examples'][number]
  readonly names: ReadonlyMap<string, string>
}

/** Requests of one shape, with a link to it and to the agent. */
function Requests({ example: { method, url, agentId, shapeId, count }, names }: RequestsProps) {
  return (
    <>
      <a href={makeHref({ agent: agentId, shape: shapeId })}>
        <Method name={method} /> <Text value={url} limit={300} />
      </a>{' '}
      <span class="hint">
        {count} × of <Text value={names.get(agentId) ?? 'an agent'} limit={80} href={hrefOf('agents', agentId)} />
      </span>
    </>
  )
}
