import { type Family, families, type Histogram, histograms } from './layout.ts'
import type { Totals } from './metrics.ts'

/** Media type of the text format of Prometheus, which every scraper reads. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** A number that is read for each scrape rather than counted. */
export interface MetricSample {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly value: number
  /** Callers must not be able to choose names or values. */
  readonly labels?: Readonly<Record<string, string>>
}

/** All metrics as text, one block for each name (Prometheus exposition formats, text 0.0.4). */
export function exposition(totals: Totals, readings: readonly MetricSample[]): string {
  const blocks = [
    ...families.map(family => familyText(family, totals)),
    ...histograms.map(histogram => histogramText(histogram, totals)),
    ...readings.map(readingText),
  ]
  return blocks.join('')
}

function familyText(family: Family, totals: Totals): string {
  const { label } = family
  const all = totals.of(family)
  // Most refusal codes never occur: they are shown once they have.
  const shown = all.length > 12 ? all.filter(([, total], index) => total > 0 || index === 0) : all
  const lines = shown.map(([value, total]) => line(family.name, label === undefined ? {} : { [label]: value }, total))
  return head(family) + lines.join('')
}

function histogramText(histogram: Histogram, totals: Totals): string {
  const { name, bounds } = histogram
  const { counts, sum } = totals.ofHistogram(histogram)
  let count = 0
  const buckets = counts.map((inBucket, bucket) => {
    count += inBucket
    return line(`${name}_bucket`, { le: bucket < bounds.length ? String(bounds[bucket]) : '+Inf' }, count)
  })
  return `${head({ ...histogram, type: 'histogram' })}${buckets.join('')}${line(`${name}_sum`, {}, sum)}${line(`${name}_count`, {}, count)}`
}

const readingText = (reading: MetricSample): string =>
  head(reading) + line(reading.name, reading.labels ?? {}, reading.value)

function head({ name, help, type }: { readonly name: string; readonly help: string; readonly type: string }): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
}

function line(name: string, labels: Readonly<Record<string, string>>, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

const escaped = (text: string): string => text.replace(/[\\"\n]/g, found => (found === '\n' ? '\\n' : `\\${found}`))
