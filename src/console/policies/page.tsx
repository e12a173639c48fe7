import { Frame, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Text } from '../parts/text.tsx'
import { search } from '../router.ts'
import { timeText } from '../text.ts'
import type { Policy } from '../types.ts'
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
        <button type="button" disabled={reading.isReading} onClick={reading.again}>
          Refresh
        </button>
      }
    >
      <Shown reading={reading}>
        {policy => (
          <>
            <Facts policy={policy} />
            <Rules policy={policy} />
            <Explain key={search.value.toString()} name={policy.name} />
          </>
        )}
      </Shown>
    </Frame>
  )
}

function Facts({ policy }: { readonly policy: Policy }) {
  const { description, owner, timezone, shadowOf, version, CreatedOn } = policy
  return (
    <section class="card" aria-label="About this policy">
      {description !== '' && (
        <p>
          <Text value={description} />
        </p>
      )}
      {shadowOf !== undefined && (
        <p class="notice warn">
          In shadow of <Text value={shadowOf} />: it decides nothing, and is only counted.
        </p>
      )}
      <dl class="pairs">
        <div>
          <dt>When no rule decides</dt>
          <dd>
            <EffectMark effect={policy.default} />
          </dd>
        </div>
        <Fact name="Owner" value={owner === '' ? 'nobody' : owner} />
        {timezone !== undefined && <Fact name="Time zone" value={timezone} />}
        <Fact name="Made" value={timeText(CreatedOn)} />
        <Fact name="Version" value={version.slice(0, 19)} />
      </dl>
    </section>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Text value={value} limit={200} />
      </dd>
    </div>
  )
}
