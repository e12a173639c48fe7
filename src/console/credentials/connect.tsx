/** A person connects an account: what is told before the tab goes to the page of consent, and what it brings back. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { call, type Result } from '../api.ts'
import { Facts } from '../parts/facts.tsx'
import { Frame } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { Loading, Problem } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf, search } from '../router.ts'
import { timeText } from '../text.ts'
import type { BegunConnection, ConnectedAccount } from '../types.ts'
import { DeviceCode } from './device.tsx'

/** What this tab alone knows of the consent that it has begun; gone when it is used. */
const storageKey = 'connection'

/** What is asked for: whose account, and scopes beside the usual ones. */
const asked = ['agentId', 'ownerId', 'scope'] as const

const pathOf = (name: string, end: string): string => `/credentials/${encodeURIComponent(name)}/${end}`

/** Another address begins with nothing of the one before. */
export const ConnectPage: Page = ({ params: { name = '' } }) => {
  const of = Object.fromEntries(asked.flatMap(key => (search.value.has(key) ? [[key, search.value.get(key)]] : [])))
  return <Connect key={JSON.stringify([name, of])} name={name} of={of} />
}

interface ConnectProps {
  readonly name: string
  readonly of: Readonly<Partial<Record<(typeof asked)[number], string>>>
}

/** Anybody can send a person the address of this page: it begins nothing by itself. */
function Connect({ name, of }: ConnectProps) {
  const [isAsking, setAsking] = useState(false)
  const [offer, setOffer] = useState<BegunConnection>()
  const [connected, setConnected] = useState<ConnectedAccount>()
  const [problem, setProblem] = useState<string>()
  const begin = async (device: boolean) => {
    setOffer(undefined)
    setProblem(undefined)
    setAsking(true)
    const answer = await call<BegunConnection>('POST', pathOf(name, 'connect'), { body: { ...of, device } })
    setAsking(false)
    if (answer.ok) setOffer(answer.data)
    else setProblem(answer.failure.detail)
  }
  const end = (answer: Result<ConnectedAccount>) => {
    setOffer(undefined)
    if (answer.ok) setConnected(answer.data)
    else setProblem(answer.failure.detail)
  }
  const { device = null } = offer ?? {}
  const isOver = isAsking || connected !== undefined
  return (
    <Connecting name={name} problem={problem} isLoading={isAsking}>
      {connected && <Done account={connected} />}
      {offer && (
        <Offer offer={offer}>
          {device === null ? (
            <Leave name={name} offer={offer} />
          ) : (
            <DeviceCode path={pathOf(name, 'connected')} offer={{ ...offer, device }} onEnd={end} />
          )}
        </Offer>
      )}
      {!isOver && offer === undefined && <Intent of={of} />}
      {!isOver && device === null && (
        <p class="actions">
          {offer === undefined && (
            <button type="button" class="primary" onClick={() => void begin(false)}>
              Begin
            </button>
          )}
          <button type="button" onClick={() => void begin(true)}>
            Use a code instead
          </button>
        </p>
      )}
    </Connecting>
  )
}

/** What the address says, before the gateway or a server is asked for anything. */
function Intent({ of: { agentId, ownerId, scope } }: Pick<ConnectProps, 'of'>) {
  return (
    <p>
      This page connects an account of yours
      {(agentId ?? ownerId) !== undefined && (
        <>
          , for requests of <Whose agentId={agentId ?? null} ownerId={ownerId ?? null} />
        </>
      )}
      {scope !== undefined && (
        <>
          , with the scope <Text value={scope} limit={1_000} />
        </>
      )}
      . Go on only if you want that yourself: whoever sent you its address may want your account for an agent of theirs.
    </p>
  )
}

interface ConnectingProps {
  readonly name: string
  readonly problem: string | undefined
  readonly isLoading: boolean
  readonly children: ComponentChildren
}

function Connecting({ name, problem, isLoading, children }: ConnectingProps) {
  return (
    <Frame
      title={
        <>
          Connect account: <Text value={name} limit={120} />
        </>
      }
    >
      <Problem text={problem} />
      {isLoading && <Loading />}
      {children}
    </Frame>
  )
}

function Offer({ offer, children }: { readonly offer: BegunConnection; readonly children: ComponentChildren }) {
  const { url, hosts, scope, moreScope, expiresAt } = offer
  return (
    <section class="card">
      <p>
        The gateway will act with the account to which you sign in at <Text value={new URL(url).host} limit={200} />,
        for requests of <Whose {...offer} />.
      </p>
      <Facts
        facts={[
          ['Hosts that get it', hosts.join(', ') || 'none'],
          ['What is asked for', scope ?? 'what the server gives'],
          ['Until', timeText(expiresAt)],
        ]}
      />
      {moreScope !== null && (
        <p class="said">
          The account does not have <Text value={moreScope} limit={1_000} /> yet. Continue only if its agents should.
        </p>
      )}
      {children}
    </section>
  )
}

/** To the page of consent, in this tab. */
function Leave({ name, offer: { url, session } }: { readonly name: string; readonly offer: BegunConnection }) {
  const leave = () => {
    sessionStorage.setItem(storageKey, JSON.stringify({ name, session }))
    location.assign(url)
  }
  return (
    <p class="actions">
      <button type="button" class="primary" onClick={leave}>
        Continue
      </button>
    </p>
  )
}

/** Whose requests get an account. */
function Whose({ agentId, ownerId }: Pick<BegunConnection, 'agentId' | 'ownerId'>) {
  if (agentId !== null)
    return (
      <>
        the agent <a href={hrefOf('agents', agentId)}>{agentId}</a>
      </>
    )
  return ownerId === null ? (
    <>all agents</>
  ) : (
    <>
      all agents of <Text value={ownerId} limit={200} />
    </>
  )
}

/** The server has sent the tab back: what it has added leaves the address at once. */
export const ConnectedPage: Page = ({ params: { name = '' } }) => {
  const [connected, setConnected] = useState<ConnectedAccount>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    const answer = Object.fromEntries(search.value)
    history.replaceState(null, '', hrefOf('connected', name))
    const session = takeSession(name)
    if (session === undefined) {
      setProblem('This consent was not begun in this tab, or has ended. Connect the account again.')
      return
    }
    void call<ConnectedAccount>('POST', pathOf(name, 'connected'), { body: { ...answer, session } }).then(done => {
      if (done.ok) setConnected(done.data)
      else setProblem(done.failure.detail)
    })
  }, [name])
  return (
    <Connecting name={name} problem={problem} isLoading={!(connected ?? problem)}>
      {connected && <Done account={connected} />}
    </Connecting>
  )
}

function takeSession(name: string): string | undefined {
  const text = sessionStorage.getItem(storageKey)
  sessionStorage.removeItem(storageKey)
  const begun: { readonly name: string; readonly session: string } | undefined = text ? JSON.parse(text) : undefined
  return begun?.name === name ? begun.session : undefined
}

function Done({ account }: { readonly account: ConnectedAccount }) {
  const { login, scope, missing } = account
  return (
    <section class="card">
      <p>
        Connected
        {login !== null && (
          <>
            {' '}
            as <Text value={login} limit={200} />
          </>
        )}
        , for requests of <Whose {...account} />.
      </p>
      {scope !== null && (
        <p>
          Granted: <Text value={scope || 'nothing'} limit={1_000} />
        </p>
      )}
      {missing.length > 0 && (
        <p class="said">
          Not granted, although it was asked for: <Text value={missing.join(' ')} limit={1_000} />
        </p>
      )}
    </section>
  )
}
