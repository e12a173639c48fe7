import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { toast } from '../notices.ts'
import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Failed, Loading } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { isAdmin } from '../session.ts'
import type { Policy } from '../types.ts'
import { useCheck } from './check.ts'
import { diffLines } from './diff.ts'
import { DiffView } from './diff-view.tsx'
import { documentText, textOfPolicy } from './document.ts'
import { draftOfExample } from './draft.ts'
import { keepPolicy, keptPolicy } from './kept.ts'
import { OfFile, Returned } from './origin-notices.tsx'
import { lineOf } from './places.ts'
import { PublishDialog } from './publish-dialog.tsx'
import { forgetSeed, readSeed, type Seed } from './seed.ts'
import { type DraftTest, passes, Tests } from './tests.tsx'
import { goTo, type Note, PolicyText } from './text-area.tsx'
import { Trial } from './trial.tsx'
import './editor.css'

export const EditPolicyPage: Page = ({ params: { name = '' } }) => <Existing key={name} name={name} />

export const NewPolicyPage: Page = () => <Seeded policy={undefined} />

function Existing({ name }: { readonly name: string }) {
  const reading = useRead<Policy>(`/policies/${encodeURIComponent(name)}`)
  return (
    <Shown reading={reading}>
      {policy => <Seeded key={policy.version} policy={policy} onPublished={reading.again} />}
    </Shown>
  )
}

/** Begins with what the address asks for. What cannot be had is said, and the rest is there. */
function Seeded({ policy, onPublished }: Omit<EditorProps, 'seed'>) {
  const [seed, setSeed] = useState<Seed | Failure>()
  useEffect(() => void readSeed().then(setSeed), [])
  if (seed === undefined) return <Loading />
  return (
    <>
      {'code' in seed && <Failed failure={seed} />}
      <Editor policy={policy} onPublished={onPublished} seed={'code' in seed ? { tests: [] } : seed} />
    </>
  )
}

const template = {
  name: 'my-policy',
  description: '',
  default: 'Deny',
  rules: [{ name: 'read', effect: 'Allow', conditions: [{ field: 'input.method', operator: 'eq', value: 'GET' }] }],
}

const textOf = (policy: Policy | undefined): string =>
  policy === undefined ? documentText(template) : textOfPolicy(policy)

interface EditorProps {
  /** Undefined: a new one. */
  readonly policy: Policy | undefined
  readonly onPublished?: (() => void) | undefined
  readonly seed: Seed
}

/** A policy as text, checked while it is typed, with tests beside it and the difference from what is in force. */
function Editor({ policy, onPublished, seed }: EditorProps) {
  const { name = '', version = null } = policy ?? {}
  const plain = useMemo(() => textOf(policy), [policy])
  const base = policy === undefined ? '' : plain
  const start = useMemo(() => seed.textFrom?.(base) ?? plain, [plain])
  const kept = useMemo(() => keptPolicy(name), [])
  /** The version that the author began from before; undefined: the text begins with what is in force. */
  const [began, setBegan] = useState(kept?.text == null ? undefined : kept.version)
  const added = useMemo(() => (kept?.text == null ? start : seed.addTo?.(kept.text)), [])
  const [text, setText] = useState(added ?? kept?.text ?? start)
  const [tests, setTests] = useState(() => seed.tests.reduce(withTest, kept?.tests ?? []))
  const [isPublishing, setPublishing] = useState(false)
  const { notes, explanations, isChecked } = useCheck(text, tests)
  const lines = useMemo(() => diffLines(base, text), [base, text])
  const [isTyped, setTyped] = useState(kept !== undefined)
  const isTouched = isTyped && (text !== start || tests.length > 0)
  useEffect(() => {
    const own = { text: text === plain ? null : text, tests, version: began === undefined ? version : began }
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
          lacksRule={seed.addTo !== undefined && added === undefined}
          onDiscard={() => {
            setBegan(undefined)
            setText(start)
            setTests(seed.tests)
          }}
        />
      )}
      {policy !== undefined && policy.source !== 'api' && <OfFile policy={policy} text={text} base={base} />}
      <div class="editor-columns">
        <div class="stack">
          <PolicyText text={text} notes={notes} onInput={typed(setText)} />
          <Notes text={text} notes={notes} isChecked={isChecked} />
        </div>
        <Tests tests={tests} explanations={explanations} redacted={seed.redacted} onChange={typed(setTests)} />
      </div>
      <Trial
        text={text}
        isReady={isChanged && isChecked && mistakes === 0}
        inForce={policy?.name}
        agentId={policy === undefined ? seed.agentId : undefined}
        onTest={example => typed(setTests)([...tests, { draft: draftOfExample(example), wanted: '' }])}
      />
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
            forgetSeed()
            setPublishing(false)
            onPublished?.()
          }}
        />
      )}
    </Frame>
  )
}

/** A test that the route asks for, once. */
function withTest(tests: readonly DraftTest[], added: DraftTest): readonly DraftTest[] {
  const text = JSON.stringify(added.draft)
  return tests.some(({ draft }) => JSON.stringify(draft) === text) ? tests : [...tests, added]
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
  if (!isChecked)
    return (
      <p class="hint" aria-busy="true">
        Checking…
      </p>
    )
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
