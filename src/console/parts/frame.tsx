import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { now } from '../clock.ts'
import { agoText, timeText } from '../text.ts'
import '../styles/pages.css'
import { pageTitle } from '../title.ts'
import type { Reading } from './read.ts'
import { Failed, Loading } from './states.tsx'

interface FrameProps {
  readonly title: ComponentChildren
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}

/** A page with its heading, which is the title of the window, too. */
export function Frame({ title, aside, children }: FrameProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    pageTitle.value = heading.current?.textContent ?? ''
  })
  return (
    <div class="page">
      <header class="page-head">
        <h1 ref={heading}>{title}</h1>
        {aside !== undefined && <div class="actions">{aside}</div>}
      </header>
      {children}
    </div>
  )
}

interface ShownProps<T> {
  readonly reading: Reading<T>
  readonly children: (data: T) => ComponentChildren
}

/** What was read; until then, or instead of it, that it is being read or what failed. */
export function Shown<T>({ reading: { data, failure, again }, children }: ShownProps<T>) {
  return (
    <>
      {failure !== undefined && <Failed failure={failure} onRetry={again} />}
      {data === undefined ? failure === undefined && <Loading /> : children(data)}
    </>
  )
}

/** How long ago, with the time itself at hand. */
export function When({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={timeText(at)}>
      {agoText(at, now.value)}
    </time>
  )
}

export function Refresh({ reading: { isReading, again } }: { readonly reading: Reading<unknown> }) {
  return (
    <button type="button" disabled={isReading} onClick={again}>
      Refresh
    </button>
  )
}
