import { useState } from 'preact/hooks'
import { type Finding, markingsText, type Source, segmentsOf, touching } from '../body/findings.ts'
import { type JsonList, type JsonObject, type Json as JsonValue, jsonCoding, readJson } from '../body/json.ts'
import { Cut, Text } from '../parts/text.tsx'

/** Members of one object that are drawn at once. */
const atOnce = 100
/** Levels that are open at first, for values that are not large. */
const openLevels = 3

interface ValueProps {
  readonly value: JsonValue
  readonly source: Source
  readonly level?: number
}

/** A value that was read already, such as one of the audit trail. */
export function Json({ value }: { readonly value: unknown }) {
  const text = JSON.stringify(value)
  const tree = readJson(text)
  return typeof tree === 'string' ? <Text value={text} /> : <JsonTree value={tree} source={{ text, findings: [] }} />
}

/** JSON as a tree. What is closed is not drawn. */
export function JsonTree({ value, source }: ValueProps) {
  return (
    <div class="json">
      <Value value={value} source={source} />
    </div>
  )
}

function Value({ value, source, level = 0 }: ValueProps) {
  switch (value.kind) {
    case 'string':
      return (
        <span class="json-string">
          "<Cut pieces={segmentsOf(source, inner(value), jsonCoding)} kind="value" first={8_192} />"
        </span>
      )
    case 'plain':
      return (
        <span class="json-plain">
          <Cut pieces={segmentsOf(source, value)} />
        </span>
      )
    default:
      return <Inner value={value} source={source} level={level} />
  }
}

/** Without the quotation marks. */
const inner = ({ from, to }: { readonly from: number; readonly to: number }) => ({ from: from + 1, to: to - 1 })

interface InnerProps extends ValueProps {
  readonly value: JsonObject | JsonList
  readonly level: number
}

function Inner({ value, source, level }: InnerProps) {
  const isList = value.kind === 'list'
  const size = isList ? value.items.length : value.members.length
  const found = touching(source.findings, value.from, value.to)
  const [hasAll, setHasAll] = useState(false)
  // Of many items, those with a match or a change are drawn.
  const wanted = size > atOnce && !hasAll ? wantedOf(found) : []
  const picked = wanted.length > 0 ? touched(value, wanted) : undefined
  const isFew = size <= atOnce || picked !== undefined
  const [isOpen, setOpen] = useState((level < openLevels || found.length > 0) && isFew)
  const [count, setCount] = useState(atOnce)
  if (size === 0) return <span class="json-plain">{isList ? '[]' : '{}'}</span>
  return (
    <span class="json-inner">
      <button type="button" class="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isList ? `[${size}]` : `{${size}}`}
      </button>
      {!isOpen && <Found list={found} />}
      {isOpen && (
        <ul>
          {isList ? (
            <Items value={value} source={source} level={level} count={count} picked={picked} />
          ) : (
            <Members value={value} source={source} level={level} count={count} picked={picked} />
          )}
          {picked !== undefined && (
            <li>
              <button type="button" onClick={() => setHasAll(true)}>
                All {size}
              </button>{' '}
              <span class="hint">
                {picked.length < atOnce ? 'The others are not marked.' : `The first ${atOnce} that are marked.`}
              </span>
            </li>
          )}
          {picked === undefined && size > count && (
            <li>
              <button type="button" onClick={() => setCount(count * 4)}>
                {size - count} more
              </button>
              <Found list={touching(source.findings, startOf(value, count), value.to)} />
            </li>
          )}
        </ul>
      )}
    </span>
  )
}

function Found({ list }: { readonly list: readonly Finding[] }) {
  return list.length === 0 ? null : <span class="mark warn">{markingsText(list)}</span>
}

const startOf = (value: JsonObject | JsonList, index: number): number =>
  (value.kind === 'list' ? value.items[index]?.from : value.members[index]?.at.from) ?? value.to

interface SomeProps<T> extends InnerProps {
  readonly value: T & InnerProps['value']
  readonly count: number
  /** Which ones; absent: the first ones. */
  readonly picked: readonly number[] | undefined
}

/** What a person looks for; else what changed. */
function wantedOf(found: readonly Finding[]): readonly Finding[] {
  const matches = found.filter(({ isMatch }) => isMatch === true)
  return matches.length > 0 ? matches : found.filter(({ change }) => change !== undefined)
}

/** The first items with one of these findings. */
function touched(value: JsonObject | JsonList, wanted: readonly Finding[]): readonly number[] {
  const ranges =
    value.kind === 'list' ? value.items : value.members.map(({ at, value: of }) => ({ from: at.from, to: of.to }))
  const picked: number[] = []
  for (const [index, { from, to }] of ranges.entries()) {
    if (touching(wanted, from, to).length > 0) picked.push(index)
    if (picked.length === atOnce) break
  }
  return picked
}

function Items({ value, source, level, count, picked }: SomeProps<JsonList>) {
  const items = picked ?? value.items.slice(0, count).map((_, index) => index)
  return items.map(index => {
    const item = value.items[index]
    return (
      item && (
        <li key={index}>
          <span class="json-name">{index}</span>: <Value value={item} source={source} level={level + 1} />
        </li>
      )
    )
  })
}

function Members({ value, source, level, count, picked }: SomeProps<JsonObject>) {
  const members = picked?.flatMap(index => value.members[index] ?? []) ?? value.members.slice(0, count)
  return members.map(({ name, at, value: of }) => (
    <li key={at.from}>
      <span class="json-name">
        {name === '' ? '""' : <Cut pieces={segmentsOf(source, inner(at), jsonCoding)} kind="value" first={300} />}
      </span>
      {value.doubled.has(name) && <span class="mark warn">more than once</span>}: {''}
      <Value value={of} source={source} level={level + 1} />
    </li>
  ))
}
