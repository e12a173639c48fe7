import type { Family, Histogram } from './family.ts'
import { families, histograms } from './layout.ts'
import type { HistogramTotal, Totals } from './metrics.ts'

/** The formats of scrapers: text 0.0.4 of Prometheus, which every one reads, and OpenMetrics 1.0. */
export type ExpositionFormat = 'text' | 'openMetrics'

export const expositionTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openMetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** A number that is read for each scrape rather than counted. */
export interface MetricSample {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly value: number
  /** Callers must not be able to choose names or values. */
  readonly labels?: Readonly<Record<string, string>>
}

/**
 * All metrics as text, one block for each name. Series have the same names and labels in both formats, so that those of a
 * scraper that changes the format go on.
 */
export function exposition(totals: Totals, readings: readonly MetricSample[], format: ExpositionFormat): string {
  const blocks = [
    ...families.map(family => familyText(family, totals, format)),
    ...histograms.map(histogram => histogramText(histogram, totals, format)),
    ...readings.map((reading, n) => readingText(reading, readings[n - 1], format)),
  ]
  return blocks.join('') + (format === 'openMetrics' ? '# EOF\n' : '')
}

function familyText(family: Family, totals: Totals, format: ExpositionFormat): string {
  const { label } = family
  // All from the start: a series that appears with its first event has no increase.
  const lines = totals
    .of(family)
    .map(([value, total]) => line(family.name, label === undefined ? {} : { [label]: value }, total))
  return head(family, format) + lines.join('')
}

function histogramText(histogram: Histogram, totals: Totals, format: ExpositionFormat): string {
  const { label } = histogram
  const series = totals
    .ofHistogram(histogram)
    .map(([value, total]) => seriesText(histogram, label === undefined ? {} : { [label]: value }, total))
  return head({ ...histogram, type: 'histogram' }, format) + series.join('')
}

type Labels = Readonly<Record<string, string>>

function seriesText({ name, bounds }: Histogram, labels: Labels, { counts, sum }: HistogramTotal): string {
  let count = 0
  const buckets = counts.map((inBucket, bucket) => {
    count += inBucket
    return line(`${name}_bucket`, { ...labels, le: bucket < bounds.length ? String(bounds[bucket]) : '+Inf' }, count)
  })
  return `${buckets.join('')}${line(`${name}_sum`, labels, sum)}${line(`${name}_count`, labels, count)}`
}

/** Series of one name follow each other, and have one head. */
const readingText = (reading: MetricSample, before: MetricSample | undefined, format: ExpositionFormat): string =>
  (reading.name === before?.name ? '' : head(reading, format)) + line(reading.name, reading.labels ?? {}, reading.value)

interface Described {
  readonly name: string
  readonly help: string
  readonly type: string
}

function head({ name, help, type }: Described, format: ExpositionFormat): string {
  // OpenMetrics names a counter without the suffix of its samples.
  const family = format === 'openMetrics' && type === 'counter' ? name.replace(/_total$/, '') : name
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n`
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

const escaped = (text: string): string => text.replace(/[\\"\n]/g, found => (found === '\n' ? '\\n' : `\\${found}`))

/** OpenMetrics for a scraper that names it; text for all others. @param accept values of the field */
export const formatFor = (accept: readonly string[]): ExpositionFormat =>
  accept.join(',').toLowerCase().split(',').some(namesOpenMetrics) ? 'openMetrics' : 'text'

function namesOpenMetrics(range: string): boolean {
  const [type = '', ...given] = range.split(';').map(part => part.trim())
  const parameter = (name: string) => given.find(part => part.startsWith(`${name}=`))?.slice(name.length + 1)
  const version = parameter('version')?.replaceAll('"', '') ?? '1.0.0'
  return type === 'application/openmetrics-text' && version === '1.0.0' && Number(parameter('q') ?? 1) > 0
}
