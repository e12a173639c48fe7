import { useState } from 'preact/hooks'
import { call, change, type Failure } from '../api.ts'
import { Act } from '../parts/act.tsx'
import { Choice } from '../parts/choice.tsx'
import { ShownOnce } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { When } from '../parts/frame.tsx'
import { useRead } from '../parts/read.ts'
import { Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { isAdmin } from '../session.ts'
import { timeText } from '../text.ts'
import type { Agent, Key, NewKey } from '../types.ts'
import { Snippets } from './snippets.tsx'

/** The keys of an agent, by which programs sign in. */
export function Keys({ agent }: { readonly agent: Agent }) {
  const reading = useRead<readonly Key[]>(`/agents/${agent.id}/keys`)
  const [asked, setAsked] = useState<'new' | Key>()
  const done = () => {
    setAsked(undefined)
    reading.again()
  }
  const { data: keys = [] } = reading
  return (
    <section class="card" aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      {reading.data !== undefined && keys.length === 0 && (
        <p class="hint">None: its programs cannot sign in by a key.</p>
      )}
      {keys.length > 0 && (
        <Table
          label="Keys"
          items={keys}
          columns={[
            { name: 'Name', cell: ({ name }) => <Text value={name} limit={120} /> },
            { name: 'Made', kind: 'wide', cell: ({ createdAt }) => <When at={createdAt} /> },
            { name: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <When at={lastUsedAt} />) },
            { name: 'Expires', cell: ({ expiresAt }) => (expiresAt === null ? 'never' : timeText(expiresAt)) },
            {
              name: '',
              kind: 'number',
              cell: key =>
                isAdmin.value && (
                  <button type="button" class="danger" onClick={() => setAsked(key)}>
                    Revoke…
                  </button>
                ),
            },
          ]}
        />
      )}
      {isAdmin.value && agent.status !== 'Revoked' && (
        <p class="actions">
          <button type="button" onClick={() => setAsked('new')}>
            New key…
          </button>
        </p>
      )}
      {asked === 'new' && <NewKeyDialog agent={agent} onClose={done} />}
      {asked !== undefined && asked !== 'new' && (
        <Act
          title="Revoke this key?"
          verb="Revoke"
          act={() => change('DELETE', `/keys/${encodeURIComponent(asked.id)}`)}
          said="The key is revoked."
          onClose={() => setAsked(undefined)}
          onDone={done}
        >
          <p class="line">
            <Text value={asked.name} limit={200} />
          </p>
          <p data-first tabIndex={-1}>
            Programs with this key are refused at once, and what they have under way ends.
          </p>
        </Act>
      )}
    </section>
  )
}

/** Days until a key expires. */
const lives = [
  ['', 'never'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
] as const

function NewKeyDialog({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }) {
  const [made, setMade] = useState<NewKey>()
  const [name, setName] = useState('')
  const [days, setDays] = useState('90')
  const [idempotencyKey] = useState(() => crypto.randomUUID())
  const act = async (): Promise<Failure | undefined> => {
    const expiresAt = days === '' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString()
    const body = { name: name.trim(), expiresAt }
    const answer = await call<NewKey>('POST', `/agents/${agent.id}/keys`, { body, idempotencyKey })
    if (answer.ok) setMade(answer.data)
    return answer.ok ? undefined : answer.failure
  }
  if (made !== undefined) {
    return (
      <Dialog title="The new key" onClose={onClose}>
        <ShownOnce name="The key" value={made.key} />
        <Snippets agent={agent.name} />
        <p class="actions">
          <button type="button" onClick={onClose}>
            Close
          </button>
        </p>
      </Dialog>
    )
  }
  return (
    <Act
      title="New key"
      verb="Make the key"
      tone="primary"
      isBlocked={name.trim() === ''}
      act={act}
      onClose={onClose}
      onDone={() => {}}
    >
      <label>
        Where it is used
        <input
          data-first
          maxLength={200}
          value={name}
          autocomplete="off"
          placeholder="build server"
          onInput={event => setName(event.currentTarget.value)}
        />
      </label>
      <Choice label="Expires" value={days} options={lives} onChange={setDays} />
    </Act>
  )
}
