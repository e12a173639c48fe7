import type { Page } from '../parts/later.tsx'
import { RequestView } from '../request/request.tsx'
import { rows } from './store.ts'

/** One request, behind a link that can be sent to a colleague. */
export const RequestPage: Page = ({ params }) => {
  const { id = '' } = params
  return (
    <div class="single">
      <RequestView key={id} id={id} row={rows.value.get(id)} />
    </div>
  )
}
