import type { Measured } from './rounds.ts'
import { median } from './stats.ts'

const barHeight = 22
const rowHeight = 30
const labelWidth = 130
const barWidth = 430
const width = 640
const top = 44

/** A bar for each road: CPU time for one request, as an SVG document that follows the reader's light or dark mode. */
export function chartOf(measured: readonly Measured[], caption: string): string {
  const bars = measured
    .map(({ name, cpu }) => ({ name, cpu: median(cpu) }))
    .filter(({ cpu }) => !Number.isNaN(cpu))
    .sort((left, right) => left.cpu - right.cpu)
  const most = Math.max(...bars.map(({ cpu }) => cpu))
  const height = top + bars.length * rowHeight + 34
  const rows = bars.map(({ name, cpu }, index) => {
    const y = top + index * rowHeight
    const length = Math.max(1, Math.round((cpu / most) * barWidth))
    const kind = name.startsWith('gateway') ? 'own' : 'peer'
    return [
      `<text x="${labelWidth - 10}" y="${y + 16}" text-anchor="end">${escaped(name)}</text>`,
      `<rect class="${kind}" x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" rx="2"/>`,
      `<text x="${labelWidth + length + 8}" y="${y + 16}">${cpu.toFixed(1)}</text>`,
    ].join('\n')
  })
  const title = 'CPU time of the proxy for one request, microseconds (less is better)'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img">
<title>${title}</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px }
.own { fill: #0969da }
.peer { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .own { fill: #4493f8 } .peer { fill: #6e7681 } }
</style>
<text x="10" y="22">${title}</text>
${rows.join('\n')}
<text class="small" x="10" y="${height - 12}">${escaped(caption)}</text>
</svg>
`
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
