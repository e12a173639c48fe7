import { call } from '../api.ts'
import { useAsync } from '../parts/async.ts'
import type { PolicyCheck } from '../types.ts'
import { requestOf } from './draft.ts'
import { placeOfPath, syntaxProblem } from './places.ts'
import type { DraftTest } from './tests.tsx'
import type { Note } from './text-area.tsx'

/** How long the typing must rest before the text is checked, milliseconds. */
const restMs = 400

interface Checked {
  readonly notes: readonly Note[]
  readonly explanations: readonly (PolicyCheck['explanations'][number] | undefined)[]
}

/** Asks the gateway what is wrong with the text, and what it decides on the tests. */
export function useCheck(text: string, tests: readonly DraftTest[]) {
  const { last = unchecked, current } = useAsync(() => check(text, tests), [text, tests], restMs)
  return { ...last, isChecked: current !== undefined }
}

const unchecked: Checked = { notes: [], explanations: [] }

async function check(text: string, tests: readonly DraftTest[]): Promise<Checked> {
  const syntax = syntaxProblem(text)
  if (syntax !== undefined) return { notes: [{ tone: 'bad', ...syntax }], explanations: [] }
  const asked = tests.filter(({ draft }) => draft.url !== '')
  const body = { policy: JSON.parse(text), requests: asked.map(({ draft }) => requestOf(draft)) }
  const answer = await call<PolicyCheck>('POST', '/policies/check', { body })
  if (!answer.ok) {
    const { detail, problem } = answer.failure
    const errors = problem.errors ?? [{ field: '', message: detail }]
    const notes = errors.map(({ field, message }): Note => {
      return { tone: 'bad', message: `${field} ${message}`.trim(), at: placeOfPath(text, field) }
    })
    return { notes, explanations: [] }
  }
  const notes = answer.data.warnings.map(({ code, path, message }): Note => {
    return { tone: 'warn', message: `${message} (${code})`, at: placeOfPath(text, path) }
  })
  const explanations = tests.map(test => answer.data.explanations[asked.indexOf(test)])
  return { notes, explanations }
}
