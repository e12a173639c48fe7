import { useEffect, useId, useRef, useState } from 'preact/hooks'
import './language.ts'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Series } from '../types.ts'

export interface Line {
  readonly name: string
  readonly values: Series
  /** Name of a colour of the style sheet. */
  readonly colour: 'accent' | 'good' | 'bad' | 'warn' | 'ink-soft' | 'line-strong'
  readonly isDashed?: boolean
}

interface PlotProps {
  readonly title: string
  readonly unit: string
  readonly lines: readonly Line[]
  /** Ends of the steps, seconds since the epoch. */
  readonly times: readonly number[]
  /** Length of the time axis, seconds. */
  readonly span: number
}

const height = 170
const dark = matchMedia('(prefers-color-scheme: dark)')

/** Lines over time. Below them are the numbers under the pointer, or the latest. */
export function Plot({ title, unit, lines, times, span }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const [at, setAt] = useState<number>()
  const [isDark, setDark] = useState(dark.matches)
  const id = useId()

  useEffect(() => {
    const listen = () => setDark(dark.matches)
    dark.addEventListener('change', listen)
    return () => dark.removeEventListener('change', listen)
  }, [])

  useEffect(() => {
    const box = place.current
    if (box === null) return
    const made = new uPlot(
      optionsOf(lines, { width: box.clientWidth, span, onPoint: setAt }),
      dataOf(times, lines),
      box,
    )
    plot.current = made
    const watch = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height }))
    watch.observe(box)
    return () => {
      watch.disconnect()
      made.destroy()
    }
  }, [isDark, span])

  useEffect(() => plot.current?.setData(dataOf(times, lines)), [times])

  return (
    <section class="card plot" aria-labelledby={id}>
      <h2 id={id}>
        {title} <span class="hint">{unit}</span>
      </h2>
      <div ref={place} class="plot-place" aria-hidden="true" />
      <ul class="legend">
        {lines.map(({ name, values, colour, isDashed }) => (
          <li key={name} class={isDashed === true ? 'dashed' : undefined}>
            <span class={`swatch ${colour}`} />
            {name} <strong>{numberText(values[at ?? values.length - 1])}</strong>
          </li>
        ))}
      </ul>
    </section>
  )
}

function numberText(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2)
}

/** uPlot does not write to what it is given. */
const dataOf = (times: readonly number[], lines: readonly Line[]) =>
  [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData

interface Frame {
  readonly width: number
  readonly span: number
  readonly onPoint: (at: number | undefined) => void
}

function optionsOf(lines: readonly Line[], { width, span, onPoint }: Frame): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colourOf = (name: string) => style.getPropertyValue(`--${name}`)
  const axis = {
    stroke: colourOf('ink-soft'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: colourOf('line'), width: 1 },
    ticks: { stroke: colourOf('line'), width: 1 },
  }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, sync: { key: 'overview' }, y: false },
    scales: {
      x: { range: (_, __, until) => [until - span, until] },
      // An empty plot has a line at its bottom, not in its middle.
      y: { range: (_, __, most) => [0, Math.max(1, (most ?? 0) * 1.1)] },
    },
    axes: [axis, { ...axis, size: 46 }],
    series: [
      {},
      ...lines.map(({ name, colour, isDashed }) => ({
        label: name,
        stroke: colourOf(colour),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
        ...(isDashed === true && { dash: [4, 4] }),
      })),
    ],
    hooks: { setCursor: [({ cursor: { idx } }) => onPoint(idx ?? undefined)] },
  }
}
