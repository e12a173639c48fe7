import type { Failure } from '../api.ts'
import { useAsync } from '../parts/async.ts'
import { useSome } from '../parts/some.tsx'
import { Table } from '../parts/table.tsx'
import { Cut } from '../parts/text.tsx'
import { DifferingValue, sameText } from '../request/changes.tsx'
import { areSame, type Comparison, compareRequests } from '../request/differences.ts'
import { readRequest } from '../request/exact.ts'
import { ownText } from '../session.ts'
import { plural, sizeText, type TextKind } from '../text.ts'
import type { HitlRequest, HitlSummary, VerdictOutcome } from '../types.ts'
import { endingText } from './ending.ts'
import { opened } from './opened.ts'
import { type Choice, choiceTexts, type Verdict } from './several-verdicts.ts'
import { rows } from './store.ts'
import { findingsOf, What, whatOf } from './what.tsx'

/** What differs in the requests, or why that is not known. */
type Compared =
  | { readonly comparisons: readonly Comparison[] }
  /** Why it is not known. */
  | { readonly problem: string }

/** Bytes of all bodies that are compared. */
const mostBytes = 16_777_216
/** Requests that are read at the same time. */
const atOnce = 4
/** Values that are shown at first. */
const firstColumns = 6

/** Reads the requests to compare them; undefined until then. */
export const useCompared = (views: readonly HitlSummary[]): Compared | undefined =>
  useAsync(() => compare(views), []).current

async function compare(views: readonly HitlSummary[]): Promise<Compared> {
  if (!areSame('body', views) && views.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0) > mostBytes) {
    return { problem: `Their bodies are more than ${sizeText(mostBytes)} in all.` }
  }
  const read: HitlRequest[] = []
  let failure: Failure | undefined
  const queue = views.entries()
  const work = async () => {
    for (const [index, { id }] of queue) {
      const answer = await readRequest(id)
      if (answer.ok) read[index] = answer.data
      else failure = answer.failure
      if (failure !== undefined) return
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return failure === undefined ? { comparisons: await compareRequests(read) } : { problem: failure.detail }
}

interface TableProps {
  readonly items: readonly HitlSummary[]
  readonly compared: Compared | undefined
  readonly outcomes: readonly VerdictOutcome[] | undefined
  /** What is decided on all but the exceptions; undefined when it was. */
  readonly verdict: Verdict | undefined
  readonly choicesOf: (view: HitlSummary) => readonly Choice[]
  readonly choiceOf: (view: HitlSummary) => Choice
  readonly onChoice: (id: string, choice: Choice) => void
}

interface Differing {
  readonly name: string
  readonly kind: TextKind
  readonly values: readonly (string | undefined)[]
}

/** A line for each request, a column for each value that is not the same in all of them. */
export function SeveralTable({ items, compared, outcomes, verdict, choicesOf, choiceOf, onChoice }: TableProps) {
  const comparisons = compared !== undefined && 'comparisons' in compared ? compared.comparisons : []
  const [columns, more] = useSome([...summaryColumns(items), ...comparisons.flatMap(columnsOf)], firstColumns)
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <section class="items" tabIndex={0} aria-label="Requests, and what differs in them">
        <Table
          items={items}
          columns={[
            {
              name: 'Request',
              kind: 'row',
              cell: view => (
                <>
                  <What view={view} />
                  <State view={view} outcome={outcomes?.find(({ id }) => id === view.id)} />
                </>
              ),
            },
            ...(verdict === undefined || (items.length < 2 && items.every(view => choiceOf(view) === verdict))
              ? []
              : [
                  {
                    name: 'Verdict',
                    cell: (view: HitlSummary) => (
                      <Exception
                        verdict={verdict}
                        choices={choicesOf(view)}
                        chosen={choiceOf(view)}
                        onChoice={choice => onChoice(view.id, choice)}
                      />
                    ),
                  },
                ]),
            ...columns.map(({ name, kind, values }) => ({
              name: <Cut pieces={[{ text: name }]} kind={kind} first={120} />,
              cell: (_: HitlSummary, index: number) => <DifferingValue value={values[index]} kind={kind} first={120} />,
            })),
          ]}
        />
      </section>
      {more && <p class="hint">Values that differ: {more}</p>}
      <Notes compared={compared} />
    </>
  )
}

interface ExceptionProps {
  readonly verdict: Verdict
  readonly choices: readonly Choice[]
  readonly chosen: Choice
  readonly onChoice: (choice: Choice) => void
}

/** Whether this one is decided otherwise than the others. */
function Exception({ verdict, choices, chosen, onChoice }: ExceptionProps) {
  return (
    <select
      aria-label="Verdict"
      class={chosen === verdict ? 'exception' : 'exception other'}
      value={chosen}
      onChange={event => onChoice(choices.find(one => one === event.currentTarget.value) ?? verdict)}
    >
      {choices.map(choice => (
        <option key={choice} value={choice}>
          {choiceTexts[choice]}
        </option>
      ))}
    </select>
  )
}

const longestUrl = 120

/** What the list knows of them, where it is not the same. */
function summaryColumns(items: readonly HitlSummary[]): readonly Differing[] {
  const column = (name: string, read: (view: HitlSummary) => string): Differing => ({
    name,
    kind: 'escaped',
    values: items.map(read),
  })
  const all = [
    column('Agent', ({ agentName, agentId }) => agentName ?? agentId),
    column('Rule', ({ rule }) => rule ?? 'default of the policy'),
    // Where no words are known, the name of the request has it, up to a length.
    ...(items.some(view => whatOf(view) !== null || view.url.length > longestUrl)
      ? [column('Method and URL', ({ method, url }) => `${method} ${url.split('?')[0]}`)]
      : []),
  ]
  return all.filter(({ values }) => new Set(values).size > 1)
}

const columnsOf = ({ part, differences, kind }: Comparison): readonly Differing[] =>
  differences.map(({ where, values }) => ({ name: `${part}: ${where}`, kind, values }))

function Notes({ compared }: { readonly compared: Compared | undefined }) {
  if (compared === undefined) return <p role="status">Reading what differs…</p>
  if ('problem' in compared) return <p class="notice warn">What differs is not known. {compared.problem}</p>
  const { comparisons } = compared
  return (
    <>
      <p>{sameText(comparisons)}</p>
      {comparisons.map(({ part, note }) => note !== undefined && <p class="hint">{`${part}: ${note}`}</p>)}
    </>
  )
}

/** What became of it, or what a reviewer must know before. */
function State({ view, outcome }: { readonly view: HitlSummary; readonly outcome: VerdictOutcome | undefined }) {
  const ending = rows.value.get(view.id)?.ending
  if (outcome !== undefined) return <OutcomeOf outcome={outcome} />
  const problem = ending === undefined ? ownText(view) : endingText(ending)
  if (problem !== undefined) return <p class="bad-text">{problem}</p>
  const marks = [
    ...(opened.value.has(view.id) ? [] : ['not opened']),
    ...(findingsOf(view) > 0 ? [plural(findingsOf(view), 'finding')] : []),
  ]
  return marks.map(text => (
    <span key={text} class="mark warn">
      {text}
    </span>
  ))
}

function OutcomeOf({ outcome: { outcome, upstreamStatus, detail } }: { readonly outcome: VerdictOutcome }) {
  const texts = {
    denied: 'denied',
    counted: 'approval counted; another is needed',
    sent: `sent, ${upstreamStatus}`,
    refused: detail,
  }
  return <p class={outcome === 'refused' ? 'bad-text' : 'good-text'}>{texts[outcome]}</p>
}
