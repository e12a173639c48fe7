import { useId } from 'preact/hooks'
import { search, setSearch } from '../router.ts'

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
