import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Loading } from './states.tsx'

type Params = Readonly<Record<string, string>>
export type Page = ComponentType<{ readonly params: Params }>

/** A page whose code is fetched when it is opened first. */
export function later(load: () => Promise<Page>): Page {
  let loaded: Page | undefined
  return ({ params }) => {
    const [Ready, setReady] = useState<{ readonly page: Page | undefined }>({ page: loaded })
    useEffect(() => {
      if (loaded !== undefined) return
      void load().then(page => {
        loaded = page
        setReady({ page })
      })
    }, [])
    return Ready.page === undefined ? <Loading /> : <Ready.page params={params} />
  }
}
