import { useRead } from '../parts/read.ts'
import type { Credential } from '../types.ts'

/** How often they are read again, milliseconds. */
const everyMs = 10_000

/** Names the credentials that people must look at; nothing when all are well. */
export function CredentialTroubles() {
  const { data = [] } = useRead<readonly Credential[]>('/credentials', everyMs)
  const names = data.filter(({ state }) => state === 'failing' || state === 'needed').map(({ name }) => name)
  if (names.length === 0) return null
  return (
    <p class="notice bad">
      Not renewed: {names.slice(0, 5).join(', ')}
      {names.length > 5 && ` and ${names.length - 5} more`}. <a href="#/credentials">Credentials</a>
    </p>
  )
}
