import { BudgetList } from '../parts/budgets.tsx'
import { useRead } from '../parts/read.ts'
import { hrefOf } from '../router.ts'
import type { Budget, BudgetPage } from '../types.ts'

/** How often it is read again, milliseconds. */
const everyMs = 60_000
/** Holders that are shown. */
const shown = 5

/** Who spends most; nothing without budgets. */
export function Spenders() {
  const { data = [] } = useRead<readonly Budget[]>('/budgets', everyMs)
  // Money of each agent says most.
  const [first] = [...data].sort((one, other) => rankOf(one) - rankOf(other))
  return first === undefined ? null : <SpendersOf key={first.name} name={first.name} />
}

const rankOf = ({ unit, of }: Budget): number => ['Money', 'Tokens', 'Calls'].indexOf(unit) * 2 + Number(of !== 'Agent')

function SpendersOf({ name }: { readonly name: string }) {
  const { data } = useRead<BudgetPage>(`/budgets/${encodeURIComponent(name)}?pageSize=${shown}`, everyMs)
  if (data === undefined || data.items.length === 0) return null
  return (
    <section class="card stack" aria-labelledby="spenders">
      <h2 id="spenders">
        Who spends most of <a href={hrefOf('budgets', name)}>{name}</a>
      </h2>
      <BudgetList states={data.items} names="holders" />
    </section>
  )
}
