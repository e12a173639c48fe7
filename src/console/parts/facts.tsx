import type { ComponentChildren } from 'preact'
import { Text } from './text.tsx'

/** Undefined: nothing is known of it, and it is left out. */
type Fact = readonly [name: string, value: ComponentChildren | undefined]

/** Names and values of one thing. A text may be one that an agent wrote. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="pairs">
      {facts.map(
        ([name, value]) =>
          value !== undefined && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{typeof value === 'string' ? <Text value={value} limit={400} /> : value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
