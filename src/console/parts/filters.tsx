import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { search, setSearch } from '../router.ts'
import { plural } from '../text.ts'
import { Choice, type Options } from './choice.tsx'

interface FieldProps {
  /** In the query of the route. */
  readonly name: string
  readonly label: string
  readonly placeholder?: string
}

/** How long the typing must rest before the list is read again, milliseconds. */
const restMs = 300

/** A filter that is typed. It is kept in the query of the route, so that a link has it. */
export function FilterText({ name, label, placeholder }: FieldProps) {
  const id = useId()
  const given = search.value.get(name) ?? ''
  const [text, setText] = useState(given)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => setText(given), [given])
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <div class="filter">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        value={text}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={event => {
          const typed = event.currentTarget.value
          setText(typed)
          clearTimeout(timer.current)
          timer.current = setTimeout(
            () => setSearch({ [name]: typed.trim(), page: undefined, before: undefined }),
            restMs,
          )
        }}
      />
    </div>
  )
}

/** @param options the first is what holds when nothing is chosen */
export function FilterChoice({ name, label, options }: FieldProps & { readonly options: Options }) {
  const [first] = options[0] ?? ['']
  return (
    <Choice
      isFilter
      label={label}
      value={search.value.get(name) ?? first}
      options={options}
      onChange={value => setSearch({ [name]: value === first ? undefined : value, page: undefined, before: undefined })}
    />
  )
}

interface PagedList {
  readonly page: number
  readonly pageSize: number
  readonly totalCount: number
  /** Where the part of the list begins that was not looked at, in lists that grow for years. */
  readonly next?: string | number | null
}

interface PagesProps {
  readonly list: PagedList
  /** What the list has, one and many. */
  readonly of: string
  readonly many?: string
}

export const pageNumber = (): number => Math.max(1, Math.floor(Number(search.value.get('page'))) || 1)

/** From one page of a list to the others, and on to what the gateway has not looked at. */
export function Pages({ list: { page, pageSize, totalCount, next = null }, of, many }: PagesProps) {
  const last = Math.max(1, Math.ceil(totalCount / pageSize))
  const isLater = search.value.get('before') !== null
  const open = (to: { readonly page?: string | undefined; readonly before?: string | undefined }) => {
    setSearch({ page: undefined, ...to })
    document.getElementById('main')?.scrollTo(0, 0)
  }
  const older = () =>
    page < last ? open({ page: String(page + 1) }) : open({ before: next === null ? undefined : String(next) })
  const newer = () =>
    page > 1 ? open({ page: page === 2 ? undefined : String(page - 1) }) : open({ before: undefined })
  if (totalCount === 0 && next === null && !isLater) return null
  const count = `${plural(totalCount, of, many)}${next === null ? '' : ' and more'}`
  return (
    <nav class="pages" aria-label="Pages of the list">
      <span class="hint">{last === 1 ? count : `Page ${page} of ${last}, ${count}`}</span>
      {(last > 1 || next !== null || isLater) && (
        <span class="actions">
          <button type="button" disabled={page <= 1 && !isLater} onClick={newer}>
            {page <= 1 && isLater ? 'Newest' : 'Newer'}
          </button>
          <button type="button" disabled={page >= last && next === null} onClick={older}>
            Older
          </button>
        </span>
      )}
    </nav>
  )
}

/** A time of the reader's clock. The query of the route has it in UTC. */
export function FilterTime({ name, label }: { readonly name: string; readonly label: string }) {
  const id = useId()
  const given = search.value.get(name)
  return (
    <div class="filter">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={given === null ? '' : localOf(given)}
        onChange={({ currentTarget: { value } }) => {
          const at = new Date(value)
          setSearch({ [name]: Number.isNaN(at.getTime()) ? undefined : at.toISOString(), page: undefined })
        }}
      />
    </div>
  )
}

/** `2026-01-05T10:00` in the time zone of the browser. */
function localOf(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return ''
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
