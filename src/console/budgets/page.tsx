import { amountText, Bar, BudgetList, share } from '../parts/budgets.tsx'
import { Pages, pageNumber } from '../parts/filters.tsx'
import { Frame, Refresh, Shown } from '../parts/frame.tsx'
import type { Page } from '../parts/later.tsx'
import { useRead } from '../parts/read.ts'
import { Empty } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { hrefOf } from '../router.ts'
import { plural } from '../text.ts'
import type { Budget, BudgetPage as Holders } from '../types.ts'

/** What is spent of all budgets, and how near the nearest is to its limit. */
export const BudgetsPage: Page = () => {
  const reading = useRead<readonly Budget[]>('/budgets')
  return (
    <Frame title="Budgets" aside={<Refresh reading={reading} />}>
      <Shown reading={reading}>
        {budgets =>
          budgets.length === 0 ? (
            <Empty title="There are no budgets">
              <p>Those of "Budgets" in the settings are listed here.</p>
            </Empty>
          ) : (
            <ul class="budgets card" aria-label="Budgets">
              {budgets.map(budget => (
                <BudgetLine key={budget.name} budget={budget} />
              ))}
            </ul>
          )
        }
      </Shown>
    </Frame>
  )
}

const whose = { Agent: 'each agent', Owner: 'each owner', Policy: 'each policy', All: 'all agents together' }

function BudgetLine({ budget }: { readonly budget: Budget }) {
  const { name, of, limit, per, spent, estimated, calls, holders, highestShare, atLimit } = budget
  const notes = [
    plural(calls, 'call'),
    plural(holders, 'holder'),
    // The amount is that of all; the bar is that of one.
    highestShare !== null && holders > 0 && `the fullest at ${Math.round(highestShare * 100)} %`,
    spent > 0 && estimated > 0 && `${Math.round((estimated / spent) * 100)} % estimated`,
    limit !== null && { Deny: 'refuses at the limit', Hitl: 'asks at the limit', Allow: 'warns at the limit' }[atLimit],
  ]
  return (
    <li>
      <p class="budget-head">
        <span>
          <strong>
            <a href={hrefOf('budgets', name)}>{name}</a>
          </strong>{' '}
          of {whose[of]}
        </span>
        <span>{amountText(spent, budget)}</span>
      </p>
      {highestShare !== null && <Bar label={`${name}, the fullest`} spent={share(highestShare, 1)} reserved={0} />}
      <p class="hint">
        {limit !== null && `limit ${amountText(limit, budget)} per ${per.toLowerCase()} · `}
        {notes.filter(Boolean).join(' · ')}
      </p>
    </li>
  )
}

/** Who has a budget, and what each has spent. */
export const BudgetPage: Page = ({ params: { name = '' } }) => {
  const reading = useRead<Holders>(`/budgets/${encodeURIComponent(name)}?page=${pageNumber()}`)
  return (
    <Frame title={<Text value={name} limit={60} />} aside={<Refresh reading={reading} />}>
      <Shown reading={reading}>
        {list => (
          <>
            {list.totalCount === 0 ? (
              <Empty title="Nobody has called in this window" />
            ) : (
              <div class="card">
                <BudgetList states={list.items} names="holders" onRaised={reading.again} />
              </div>
            )}
            <Pages list={list} of="holder" />
          </>
        )}
      </Shown>
    </Frame>
  )
}
