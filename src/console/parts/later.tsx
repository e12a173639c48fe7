import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty, Loading } from './states.tsx'

type Params = Readonly<Record<string, string>>
export type Page = ComponentType<{ readonly params: Params }>

/** A page whose code is fetched when it is opened first. */
export function later(load: () => Promise<Page>): Page {
  let loaded: Page | undefined
  return ({ params }) => {
    const [Ready, setReady] = useState<Page | 'failed' | undefined>(() => loaded)
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        page => {
          loaded = page
          setReady(() => page)
        },
        () => setReady('failed'),
      )
    }, [])
    if (Ready === 'failed') return <Missing />
    return Ready === undefined ? <Loading /> : <Ready params={params} />
  }
}

/** After an update of the gateway, the files that an old page asks for are gone. */
function Missing() {
  return (
    <Empty title="This page could not be loaded">
      <p>The gateway does not answer, or has a new version.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Empty>
  )
}
