import { useEffect, useRef } from 'preact/hooks'
import { useKeys } from '../keys.ts'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { LastAnswer } from '../request/answer.tsx'
import { RequestView } from '../request/request.tsx'
import { isAdmin, mayDecide } from '../session.ts'
import { plural } from '../text.ts'
import { usePageTitle } from '../title.ts'
import { arrange, filter, grouping, groupings, orderAll, shown, sort, sorts } from './arrangement.ts'
import { alike, chooseAll, chosenRows, clearChoice, open, openFirst, openId, openNext, step, toggle } from './choice.ts'
import { QueueList } from './list.tsx'
import { Several } from './several.tsx'
import { loading, readQueue, rows, waitingCount } from './store.ts'

export function QueuePage() {
  usePageTitle('Queue')
  const search = useRef<HTMLInputElement>(null)
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    x: ({ shiftKey }) => openId.peek() !== undefined && toggle(openId.peek() as string, shiftKey),
    '/': () => search.current?.focus(),
    Enter: ({ target }) => {
      if (target instanceof HTMLElement && target.matches('a, button, summary')) return target.click()
      document.querySelector<HTMLElement>('.detail h2')?.focus()
    },
    Escape: () => (chosenRows.peek().length > 0 ? clearChoice() : open(undefined)),
  })

  // Nothing moves under the hand of a person who comes from another page.
  useEffect(orderAll, [])
  const state = loading.value
  const isEmpty = shown.value.length === 0
  useEffect(() => {
    if (state === 'no') openFirst()
  }, [state, openId.value, isEmpty])
  if (typeof state === 'object') return <Failed failure={state} onRetry={() => void readQueue()} />
  if (state === 'first') return <Loading />
  return (
    <div class={openId.value === undefined ? 'queue' : 'queue has-open'}>
      <h1 class="hidden">Queue</h1>
      <section class="queue-list" aria-label="Queue">
        <div class="queue-tools">
          <input
            ref={search}
            type="search"
            placeholder="Filter, as agent:bot refund"
            aria-label="Filter by title, tool, model, agent, host, path, rule"
            value={filter.value}
            onInput={event => arrange({ q: event.currentTarget.value })}
          />
          <span class="hint">{countText()}</span>
          <Choice label="Order" value={sort.value} options={sorts} onChange={value => arrange({ sort: value })} />
          <Choice
            label="Groups"
            value={grouping.value ?? 'none'}
            options={groupings}
            onChange={value => arrange({ group: value })}
          />
        </div>
        <Several />
        {isEmpty ? <Nothing /> : <QueueList />}
      </section>
      <section class="detail" aria-label="Request">
        <Detail />
      </section>
    </div>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  /** The first is what holds when the route names none. */
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={event => onChange(event.currentTarget.value === options[0]?.[0] ? '' : event.currentTarget.value)}
    >
      {options.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  )
}

function countText(): string {
  const all = waitingCount.value
  return filter.value === '' ? `${all} waiting` : `${shown.value.length} of ${all} waiting`
}

function Nothing() {
  if (filter.value !== '') {
    return (
      <Empty title="No request matches the filter">
        <button type="button" onClick={() => arrange({ q: '' })}>
          Clear the filter
        </button>
      </Empty>
    )
  }
  return (
    <Empty title="Nothing waits">
      <p>New requests appear here by themselves.</p>
      {isAdmin.value && (
        <p>
          <a href="#/agents/new">Register an agent</a>
        </p>
      )}
    </Empty>
  )
}

function Detail() {
  const id = openId.value
  if (id === undefined) {
    return shown.value.length === 0 ? null : (
      <Empty title="No request is open">
        <p>Choose one, or press J.</p>
      </Empty>
    )
  }
  const row = rows.value.get(id)
  const like = row === undefined || row.ending !== undefined ? [] : alike(row.view)
  return (
    <>
      <LastAnswer />
      <button type="button" class="plain back" onClick={() => open(undefined)}>
        ← Queue
      </button>
      {mayDecide.value && like.length > 1 && (
        <p class="alike">
          {plural(like.length - 1, 'other request')} like this one{' '}
          <button type="button" onClick={() => chooseAll(like)}>
            Select all {like.length}
          </button>
        </p>
      )}
      <RequestView key={id} id={id} row={row} onDecided={() => openNext(id)} />
    </>
  )
}
