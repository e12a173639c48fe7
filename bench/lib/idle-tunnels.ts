/** Holds idle connections until it is stopped: `node idle-tunnels.ts JSON`, with one request on each first. */
import { openExchanges } from './exchanges.ts'
import type { Request } from './load.ts'

/** What the process is given. */
export interface IdleOrders {
  readonly request: Request
  readonly count: number
}

const atOnce = 50

async function hold({ request, count }: IdleOrders): Promise<void> {
  for (let open = 0; open < count; open += atOnce) {
    const answered = Promise.withResolvers<void>()
    let left = atOnce
    const all = await openExchanges(request, atOnce, (_, good) => {
      if (!good) answered.reject(new Error('a request failed'))
      if (--left === 0) answered.resolve()
    })
    for (const exchanges of all) exchanges.send()
    await answered.promise
  }
  console.log(`holding ${count}`)
}

await hold(JSON.parse(process.argv[2] ?? '') as IdleOrders)
