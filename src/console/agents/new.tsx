import { useState } from 'preact/hooks'
import { call, type Failure } from '../api.ts'
import { ShownOnce } from '../parts/copy.tsx'
import { Frame } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { Problem } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import type { NewKey, RegisteredAgent, Role } from '../types.ts'
import { PolicyField, RolesField, TagsField, tagsOf } from './agent-form.tsx'
import { Snippets } from './snippets.tsx'

/** What was made, with what is shown this once. */
interface Made {
  readonly agent: RegisteredAgent
  /** Undefined: there is none, or it could not be made. */
  readonly key: NewKey | undefined
  readonly isProgram: boolean
  readonly problem?: string | undefined
}

/** Registers an agent, or a person, and gives the first key. */
export const NewAgentPage: Page = () => {
  const [made, setMade] = useState<Made>()
  return (
    <Frame title="Register an agent">{made === undefined ? <Form onMade={setMade} /> : <Result made={made} />}</Frame>
  )
}

function Form({ onMade }: { readonly onMade: (made: Made) => void }) {
  const [policy, setPolicy] = useState('')
  const [roles, setRoles] = useState<ReadonlySet<Role>>(new Set<Role>(['agent']))
  const [tags, setTags] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  // A repeat after a broken connection must not make a second one.
  const [key] = useState(() => crypto.randomUUID())
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const given = new FormData(event.currentTarget)
    const text = (name: string) => String(given.get(name)).trim()
    setBusy(true)
    const answer = await register(
      {
        ...{ name: text('name'), ownerId: text('owner'), roles: [...roles] },
        ...(policy !== '' && { policyName: policy }),
        ...(tags.trim() !== '' && { tags: tagsOf(tags) }),
        ...(text('subject') !== '' && { externalSubject: text('subject') }),
      },
      key,
    )
    setBusy(false)
    if ('code' in answer) setFailure(answer)
    else onMade(answer)
  }
  return (
    <form class="card narrow-form" onSubmit={submit}>
      <label>
        Name
        <input name="name" required maxLength={200} autocomplete="off" data-first />
      </label>
      <label>
        Owner, who answers for it
        <input name="owner" required maxLength={200} autocomplete="off" />
      </label>
      <RolesField roles={roles} onChange={setRoles} />
      <PolicyField name={policy} onChange={setPolicy} none="that of new agents" />
      <TagsField text={tags} onInput={setTags} />
      <details>
        <summary>Signs in at the identity provider</summary>
        <label>
          Subject there
          <input name="subject" maxLength={500} autocomplete="off" />
        </label>
      </details>
      <Problem text={failure && problemText(failure)} />
      <p class="actions">
        <a href="#/agents">Cancel</a>
        <button type="submit" class="primary" disabled={isBusy || roles.size === 0}>
          {isBusy ? 'Registering…' : 'Register'}
        </button>
      </p>
    </form>
  )
}

/** What is wrong, field by field where the gateway says so. */
export function problemText({ detail, problem }: Failure): string {
  const errors = problem.errors?.map(({ field, message }) => `${field} ${message}`) ?? []
  return errors.length === 0 ? detail : errors.join('. ')
}

async function register(body: { readonly roles: readonly Role[] }, idempotencyKey: string): Promise<Made | Failure> {
  const answer = await call<RegisteredAgent>('POST', '/agents', { body, idempotencyKey })
  if (!answer.ok) return answer.failure
  const agent = answer.data
  const isProgram = body.roles.includes('agent')
  if (!isProgram) return { agent, key: undefined, isProgram }
  const key = await call<NewKey>('POST', `/agents/${agent.id}/keys`, { body: { name: 'first key' }, idempotencyKey })
  return { agent, isProgram, key: key.ok ? key.data : undefined, problem: key.ok ? undefined : key.failure.detail }
}

function Result({ made: { agent, key, isProgram, problem } }: { readonly made: Made }) {
  return (
    <>
      <p>
        <Text value={agent.name} limit={200} href={hrefOf('agents', agent.id)} /> is registered.
      </p>
      {key !== undefined && <ShownOnce name="Its key" value={key.key} />}
      <Problem text={problem && `It has no key yet. ${problem}`} />
      {!isProgram && agent.clientSecret !== undefined && <ShownOnce name="The secret" value={agent.clientSecret} />}
      {isProgram ? (
        <section class="card" aria-labelledby="first-call">
          <h2 id="first-call">Its first call</h2>
          <Snippets agent={agent.name} />
          <p class="hint">
            What its policy refuses or holds appears on <a href={hrefOf('agents', agent.id)}>its page</a>.
          </p>
        </section>
      ) : (
        <p>
          To sign in to the console: agent id <code>{agent.id}</code>
          {agent.clientSecret !== undefined && ' and this secret'}, or a link of{' '}
          <code>agent-gateway console --as NAME</code>.
        </p>
      )}
    </>
  )
}
