import type { Page } from '../parts/later.tsx'
import { LastAnswer } from '../request/answer.tsx'
import { RequestView } from '../request/request.tsx'
import { lastAnswer } from '../request/sent-answer.ts'
import { usePageTitle } from '../title.ts'
import { rows } from './store.ts'

/** One request, behind a link that can be sent to a colleague. */
export const RequestPage: Page = ({ params }) => {
  const { id = '' } = params
  // Until it is known what it asks for.
  usePageTitle('Request')
  return (
    <div class="single">
      {lastAnswer.value?.view.id === id && <LastAnswer />}
      <RequestView key={id} id={id} row={rows.value.get(id)} />
    </div>
  )
}
