import type { Measured } from './rounds.ts'
import { median } from './stats.ts'

const barHeight = 22
const rowHeight = 30
const labelWidth = 130
const barWidth = 430
const width = 640
const top = 70
const legendWidth = 155

/** What each colour stands for, light and dark. A road has the first that its name fits. */
const kinds = [
  { name: 'gateway', roads: /^gateway/, light: '#0969da', dark: '#4493f8', meaning: 'gateway' },
  { name: 'threads', roads: /^threads-/, light: '#1b7c83', dark: '#39c5cf', meaning: 'gateway, any core' },
  { name: 'post', roads: /^post/, light: '#8250df', dark: '#ab7df8', meaning: 'gateway, 16 KiB POST' },
  { name: 'peer', roads: /^/, light: '#8c959f', dark: '#6e7681', meaning: 'others' },
]

/** A bar for each road: CPU time for one request, as an SVG document that follows the reader's light or dark mode. */
export function chartOf(measured: readonly Measured[], caption: string): string {
  const bars = measured
    .map(({ name, slices, rounds }) => ({
      name,
      cpu: median(slices.length > 0 ? slices : rounds.map(({ cpu }) => cpu)),
    }))
    .filter(({ cpu }) => !Number.isNaN(cpu))
    .sort((left, right) => left.cpu - right.cpu)
  const most = Math.max(...bars.map(({ cpu }) => cpu))
  const height = top + bars.length * rowHeight + 34
  const rows = bars.map(({ name, cpu }, index) => {
    const y = top + index * rowHeight
    const length = Math.max(1, Math.round((cpu / most) * barWidth))
    return [
      `<text x="${labelWidth - 10}" y="${y + 16}" text-anchor="end">${escaped(name)}</text>`,
      `<rect class="${kindOf(name)}" x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" rx="2"/>`,
      `<text x="${labelWidth + length + 8}" y="${y + 16}">${cpu.toFixed(1)}</text>`,
    ].join('\n')
  })
  const title = 'CPU time of the proxy for one request, microseconds (less is better)'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img">
<title>${title}</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px }
${colours('light')}
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
${colours('dark')}
}
</style>
<text x="10" y="22">${title}</text>
${legend(new Set(bars.map(({ name }) => kindOf(name))))}
${rows.join('\n')}
<text class="small" x="10" y="${height - 12}">${escaped(caption)}</text>
</svg>
`
}

const kindOf = (road: string): string | undefined => kinds.find(({ roads }) => roads.test(road))?.name

const colours = (mode: 'light' | 'dark'): string =>
  kinds.map(kind => `.${kind.name} { fill: ${kind[mode]} }`).join('\n')

/** The colours that occur, with what they mean. */
function legend(found: ReadonlySet<string | undefined>): string {
  return kinds
    .filter(({ name }) => found.has(name))
    .map(({ name, meaning }, index) => {
      const x = 10 + index * legendWidth
      return `<rect class="${name}" x="${x}" y="38" width="12" height="12" rx="2"/>
<text class="small" x="${x + 18}" y="48">${meaning}</text>`
    })
    .join('\n')
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
