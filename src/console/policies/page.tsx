import { Facts } from '../parts/facts.tsx'
import { Frame, Refresh, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { hrefOf, search } from '../router.ts'
import { isAdmin } from '../session.ts'
import { timeText } from '../text.ts'
import type { Policy } from '../types.ts'
import { Drift } from './drift.tsx'
import { EffectMark } from './effect.tsx'
import { Explain } from './explain.tsx'
import { Rules } from './rules.tsx'

export const PolicyPage: Page = ({ params: { name = '' } }) => <OnePolicy key={name} name={name} />

/** One policy: its rules in the order in which they are asked, how often each decided, and why a request comes out as it does. */
function OnePolicy({ name }: { readonly name: string }) {
  const reading = useRead<Policy>(`/policies/${encodeURIComponent(name)}`)
  return (
    <Frame
      title={<Text value={name} limit={200} />}
      aside={
        <>
          <a class="button" href={`${hrefOf('policies', name, 'edit')}${requestQuery()}`}>
            {isAdmin.value ? 'Edit' : 'Try a change'}
          </a>
          <Refresh reading={reading} />
        </>
      }
    >
      <Shown reading={reading}>
        {policy => (
          <>
            <About policy={policy} />
            <Rules policy={policy} />
            <Drift name={policy.name} />
            <Explain key={search.value.toString()} name={policy.name} />
          </>
        )}
      </Shown>
    </Frame>
  )
}

/** A request that is explained is the first test of the editor. */
function requestQuery(): string {
  const id = search.value.get('request')
  return id === null ? '' : `?request=${encodeURIComponent(id)}`
}

function About({ policy }: { readonly policy: Policy }) {
  const { description, owner, timezone, shadowOf, version, CreatedOn } = policy
  return (
    <section class="card" aria-label="About this policy">
      {description !== '' && <Text value={description} as="p" />}
      {shadowOf !== undefined && (
        <p class="notice warn">
          In shadow of <Text value={shadowOf} />: it decides nothing, and is only counted.
        </p>
      )}
      <Facts
        facts={[
          ['When no rule decides', <EffectMark effect={policy.default} />],
          ['Owner', owner === '' ? 'nobody' : owner],
          ['Time zone', timezone],
          ['Made', timeText(CreatedOn)],
          ['Version', version.slice(0, 19)],
        ]}
      />
    </section>
  )
}
