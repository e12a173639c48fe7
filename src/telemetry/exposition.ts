import type { Exemplar } from './exemplars.ts'
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
 * scraper that changes the format go on. Exemplars are of OpenMetrics alone.
 *
 * @param origins labels of the hosts that have one, in the order in which they are counted
 */
export function exposition(
  totals: Totals,
  readings: readonly MetricSample[],
  format: ExpositionFormat,
  origins: readonly string[] = [],
): string {
  const shown = { format, origins }
  const blocks = [
    ...families.map(family => familyText(family, totals, shown)),
    ...histograms.map(histogram => histogramText(histogram, totals, shown)),
    ...readings.map((reading, n) => readingText(reading, readings[n - 1], format)),
  ]
  return blocks.join('') + (format === 'openMetrics' ? '# EOF\n' : '')
}

interface PageOptions {
  readonly format: ExpositionFormat
  readonly origins: readonly string[]
}

function familyText(family: Family, totals: Totals, shown: PageOptions): string {
  // All from the start: a series that appears with its first event has no increase.
  const lines = partsOf(family, shown).flatMap(([labels, part]) =>
    totals.of(part).map(([value, total]) => line(family.name, { ...labels, ...labelOf(family, value) }, total)),
  )
  return head(family, shown.format) + lines.join('')
}

function histogramText(histogram: Histogram, totals: Totals, shown: PageOptions): string {
  const { label, ...same } = histogram
  const series = partsOf(histogram, shown).flatMap(([labels, part]) =>
    totals
      .ofHistogram(part)
      .map(([value, total]) => seriesText(histogram, { ...labels, ...labelOf(histogram, value) }, total, shown.format)),
  )
  return head({ ...same, type: 'histogram' }, shown.format) + series.join('')
}

type Labels = Readonly<Record<string, string>>

/** The metric for each host that has a label, and for the others; the metric itself without any. */
function partsOf<M extends Family | Histogram>(metric: M, { origins }: PageOptions): readonly (readonly [Labels, M])[] {
  // Parts are of the same kind.
  const parts = metric.origins as readonly M[] | undefined
  if (parts === undefined || origins.length === 0) return [[{}, metric]]
  return [...origins, 'other'].map((origin, place) => [{ origin }, parts[place]!])
}

const labelOf = ({ label }: Family | Histogram, value: string): Labels =>
  label === undefined ? {} : { [label]: value }

function seriesText(
  { name, bounds }: Histogram,
  labels: Labels,
  { counts, sum, exemplars }: HistogramTotal,
  format: ExpositionFormat,
): string {
  let count = 0
  const buckets = counts.map((inBucket, bucket) => {
    count += inBucket
    const le = bucket < bounds.length ? String(bounds[bucket]) : '+Inf'
    return line(`${name}_bucket`, { ...labels, le }, count, format === 'openMetrics' ? exemplars[bucket] : undefined)
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

function line(name: string, labels: Labels, value: number, exemplar?: Exemplar): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  const example = exemplar === undefined ? '' : exampleText(exemplar)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${example}\n`
}

/** OpenMetrics 1.0, "Exemplars": labels, value, and the time in seconds. */
const exampleText = ({ traceId, value, at }: Exemplar): string =>
  ` # {trace_id="${traceId}"} ${value} ${(at / 1_000).toFixed(3)}`

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
