import { useEffect, useMemo, useState } from 'preact/hooks'
import { call } from '../api.ts'
import { toast } from '../notices.ts'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { hrefOf, search } from '../router.ts'
import { isAdmin } from '../session.ts'
import type { Policy, PolicyCheck } from '../types.ts'
import { diffLines } from './diff.ts'
import { DiffView } from './diff-view.tsx'
import { type Draft, draftOf, requestOf } from './draft.ts'
import { keepPolicy, keptPolicy } from './kept.ts'
import { OfFile, Returned } from './origin-notices.tsx'
import { lineOf, placeOfPath, syntaxProblem } from './places.ts'
import { PublishDialog } from './publish-dialog.tsx'
import { type DraftTest, passes, Tests } from './tests.tsx'
import { goTo, type Note, PolicyText } from './text-area.tsx'
import './editor.css'

export const EditPolicyPage: Page = ({ params: { name = '' } }) => <Existing key={name} name={name} />

export const NewPolicyPage: Page = () => <Editor policy={undefined} />

function Existing({ name }: { readonly name: string }) {
  const reading = useRead<Policy>(`/policies/${encodeURIComponent(name)}`)
  return (
    <Shown reading={reading}>
      {policy => <Editor key={policy.version} policy={policy} onPublished={reading.again} />}
    </Shown>
  )
}

const template = {
  name: 'my-policy',
  description: '',
  default: 'Deny',
  rules: [{ name: 'read', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] }],
}

/** The document as an author writes it: without what the gateway adds. */
function textOf(policy: Policy | undefined): string {
  if (policy === undefined) return JSON.stringify(template, null, 2)
  const { CreatedOn: _, version: __, source: ___, hits: ____, shadow: _____, ...document } = policy
  return JSON.stringify(document, null, 2)
}

interface EditorProps {
  /** Undefined: a new one. */
  readonly policy: Policy | undefined
  readonly onPublished?: () => void
}

/** A policy as text, checked while it is typed, with tests beside it and the difference from what is in force. */
function Editor({ policy, onPublished }: EditorProps) {
  const { name = '', version = null } = policy ?? {}
  const start = useMemo(() => textOf(policy), [policy])
  const base = policy === undefined ? '' : start
  const kept = useMemo(() => keptPolicy(name), [])
  /** The version that the author began from before; undefined: the text begins with what is in force. */
  const [began, setBegan] = useState(kept?.text == null ? undefined : kept.version)
  const [text, setText] = useState(kept?.text ?? start)
  const [tests, setTests] = useState(kept?.tests ?? [])
  const [isPublishing, setPublishing] = useState(false)
  const { notes, explanations, isChecked } = useCheck(text, tests)
  const lines = useMemo(() => diffLines(base, text), [base, text])
  useEffect(() => {
    if (search.peek().get('request') === null) return
    void draftOf().then(draft => setTests(before => withDraft(before, draft)))
  }, [])
  const [isTyped, setTyped] = useState(kept !== undefined)
  const isTouched = isTyped && (text !== start || tests.length > 0)
  useEffect(() => {
    const own = { text: text === start ? null : text, tests, version: began === undefined ? version : began }
    keepPolicy(name, isTouched ? own : undefined)
  }, [text, tests])
  useEffect(() => () => sayKept(name), [])
  const typed =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      setTyped(true)
      set(value)
    }
  const isChanged = text !== base
  const failed = tests.filter((test, index) => passes(test, explanations[index]) === false).length
  const mistakes = notes.filter(({ tone }) => tone === 'bad').length
  const mayPublish = isAdmin.value && (policy === undefined || policy.source === 'api')
  return (
    <Frame
      title={
        policy === undefined ? (
          'New policy'
        ) : (
          <>
            Edit <Text value={policy.name} limit={200} />
          </>
        )
      }
      aside={
        <>
          {policy !== undefined && <a href={hrefOf('policies', policy.name)}>As it is in force</a>}
          {mayPublish && (
            <button
              type="button"
              class="primary"
              disabled={!isChanged || !isChecked || mistakes > 0}
              onClick={() => setPublishing(true)}
            >
              Publish…
            </button>
          )}
        </>
      }
    >
      {began !== undefined && isTouched && (
        <Returned
          isOld={began !== version}
          onDiscard={() => {
            setBegan(undefined)
            setText(start)
            setTests([])
          }}
        />
      )}
      {policy !== undefined && policy.source !== 'api' && <OfFile policy={policy} text={text} base={base} />}
      <div class="editor-columns">
        <div class="stack">
          <PolicyText text={text} notes={notes} onInput={typed(setText)} />
          <Notes text={text} notes={notes} isChecked={isChecked} />
        </div>
        <Tests tests={tests} explanations={explanations} onChange={typed(setTests)} />
      </div>
      {isChanged && policy !== undefined && (
        <section class="card" aria-labelledby="difference">
          <h2 id="difference">What differs from what is in force</h2>
          <DiffView lines={lines} />
        </section>
      )}
      {isPublishing && (
        <PublishDialog
          policy={policy}
          text={text}
          lines={lines}
          failed={failed}
          onClose={() => setPublishing(false)}
          onPublished={() => {
            // Its tests are good for the next change, too.
            keepPolicy(name, policy === undefined || tests.length === 0 ? undefined : { text: null, tests, version })
            setPublishing(false)
            onPublished?.()
          }}
        />
      )}
    </Frame>
  )
}

/** The test of a request that the route names, once. */
function withDraft(tests: readonly DraftTest[], draft: Draft): readonly DraftTest[] {
  const text = JSON.stringify(draft)
  return tests.some(test => JSON.stringify(test.draft) === text) ? tests : [...tests, { draft, wanted: '' }]
}

/** To a person who leaves the editor. */
function sayKept(name: string): void {
  if (keptPolicy(name)?.text == null) return
  const what = name === '' ? 'The new policy' : `What you changed in ${name}`
  toast(`${what} is not published. This tab keeps it: open the editor again to go on.`)
}

interface NotesProps {
  readonly text: string
  readonly notes: readonly Note[]
  readonly isChecked: boolean
}

function Notes({ text, notes, isChecked }: NotesProps) {
  if (!isChecked) return <p class="hint">Checking…</p>
  if (notes.length === 0) return <p class="good-text">No mistakes and no warnings.</p>
  return (
    <ul class="editor-notes" aria-label="Mistakes and warnings" aria-live="polite">
      {notes.map(({ tone, message, at }) => (
        <li key={`${at} ${message}`} class={`notice ${tone}`}>
          <button type="button" class="plain" onClick={() => goTo(text, at)}>
            Line {lineOf(text, at)}
          </button>
          <span>
            <Text value={message} limit={600} />
          </span>
        </li>
      ))}
    </ul>
  )
}

/** How long the typing must rest before the text is checked, milliseconds. */
const restMs = 400

interface Checked {
  readonly notes: readonly Note[]
  readonly explanations: readonly (PolicyCheck['explanations'][number] | undefined)[]
  /** Whether it is what stands there now. */
  readonly isChecked: boolean
}

/** Asks the gateway what is wrong with the text, and what it decides on the tests. */
function useCheck(text: string, tests: readonly DraftTest[]): Checked {
  const [checked, setChecked] = useState<Checked>({ notes: [], explanations: [], isChecked: false })
  useEffect(() => {
    let isCurrent = true
    setChecked(before => ({ ...before, isChecked: false }))
    const timer = setTimeout(() => void check(text, tests).then(found => isCurrent && setChecked(found)), restMs)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [text, tests])
  return checked
}

async function check(text: string, tests: readonly DraftTest[]): Promise<Checked> {
  const syntax = syntaxProblem(text)
  if (syntax !== undefined) return { notes: [{ tone: 'bad', ...syntax }], explanations: [], isChecked: true }
  const asked = tests.filter(({ draft }) => draft.url !== '')
  const body = { policy: JSON.parse(text), requests: asked.map(({ draft }) => requestOf(draft)) }
  const answer = await call<PolicyCheck>('POST', '/policies/check', { body })
  if (!answer.ok) {
    const { detail, problem } = answer.failure
    const errors = problem.errors ?? [{ field: '', message: detail }]
    const notes = errors.map(({ field, message }): Note => {
      return { tone: 'bad', message: `${field} ${message}`.trim(), at: placeOfPath(text, field) }
    })
    return { notes, explanations: [], isChecked: true }
  }
  const notes = answer.data.warnings.map(({ code, path, message }): Note => {
    return { tone: 'warn', message: `${message} (${code})`, at: placeOfPath(text, path) }
  })
  const explanations = tests.map(test => answer.data.explanations[asked.indexOf(test)])
  return { notes, explanations, isChecked: true }
}
