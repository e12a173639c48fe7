/**
 * Two revisions of the gateway in one interleaved run: `node bench/compare.ts REV`. Figures of two runs cannot be
 * compared on a machine that does other things too; ratios of the same rounds can.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startGateway } from './lib/gateway.ts'
import { createSender } from './lib/load.ts'
import { chooseCores, describeMachine, machineText } from './lib/machine.ts'
import { temporaryFolder } from './lib/processes.ts'
import { figuresText } from './lib/report.ts'
import { benchPolicy, proxied } from './lib/roads.ts'
import type { Contestant, Measured, Round } from './lib/rounds.ts'
import { measureRounds, watchOthers } from './lib/rounds.ts'
import { quantile, ratios } from './lib/stats.ts'
import { figure, table } from './lib/table.ts'
import { startUpstream } from './lib/upstream.ts'

const help = `usage: node bench/compare.ts [options] REV [REV]

Compares a revision (or a folder with the sources) with the work tree, or with a second one.

  --rounds N        rounds that count, after one to warm up (15)
  --seconds N       length of one round (2)
  --connections N   connections of the load (64)
  --rules N         deny rules of the policy (100)
  --log             with the access log
  --json            the result as JSON
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '15' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '64' },
    rules: { type: 'string', default: '100' },
    log: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const project = fileURLToPath(new URL('..', import.meta.url))

if (values.help || positionals.length === 0) process.stdout.write(help)
else await main(positionals[0] as string, positionals[1] ?? project)
process.exit()

async function main(before: string, after: string): Promise<void> {
  const cores = await chooseCores()
  const machine = await describeMachine()
  const upstream = await startUpstream(cores.others)
  const sender = await createSender(cores.others)
  const contestants: Contestant[] = []
  for (const [name, revision] of [['before', before] as const, ['after', after] as const]) {
    const setup = { root: sourcesOf(revision), policies: [benchPolicy(Number(values.rules))], accessLog: values.log }
    const { url, token, process } = await startGateway({ ...setup, cores: cores.proxy })
    const place = { upstreamPort: upstream.port, cores: cores.proxy }
    contestants.push({ name, request: proxied(Number(new URL(url).port), token, place), process })
  }
  const pids = contestants.map(({ process }) => process?.pid as number)
  const othersShare = watchOthers([upstream.process.pid, ...pids], machine.cores)
  const size = {
    connections: Number(values.connections),
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
  }
  const measured = await measureRounds(contestants, { sender, ...size, progress: () => {} })
  if (values.json) console.log(JSON.stringify({ before, after, machine, ...size, measured }, null, 2))
  else {
    console.log(`${machineText(machine, cores)}
load by ${sender.tool}; other processes took ${(othersShare() * 100).toFixed(0)} % of the machine meanwhile

before: ${before}
after: ${after}

${figuresText(measured)}

${ratiosText(measured)}`)
  }
}

/** Folder of the sources of a revision. The packages are those of the work tree. */
function sourcesOf(revision: string): string {
  if (existsSync(join(revision, 'src/main.ts'))) return resolve(revision)
  const folder = temporaryFolder()
  const archive = execFileSync('git', ['archive', revision, 'src', 'package.json', 'openapi.json'], {
    cwd: project,
    maxBuffer: 2 ** 28,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

function ratiosText(measured: readonly Measured[]): string {
  const [before, after] = measured.map(({ rounds }) => rounds)
  const row = (name: string, value: (round: Round) => number) => {
    const all = ratios((after ?? []).map(value), (before ?? []).map(value))
    return [name, ...[0.5, 0.25, 0.75].map(share => figure(quantile(all, share), 3))]
  }
  return table(
    ['after / before, of each round', 'median', 'lower quarter', 'upper quarter'],
    [
      row('CPU us/request', ({ cpu }) => cpu),
      row('requests/s', ({ perSecond }) => perSecond),
      row('p99', ({ p99 }) => p99),
    ],
  )
}
