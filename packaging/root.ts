/**
 * `npm run image:root`: the folder that the image, the archive and the Debian package share, build/root. It is laid out as
 * `npm install --prefix` lays it out, so that units and documents hold for all: the built package, its dependencies in
 * the versions of the lock file, and the pinned Node.js, each without what is not needed to run.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('..', import.meta.url))
export const rootFolder = join(repository, 'build/root')
/** Where the folder is unpacked, unless the package has a place of its own. */
export const usualPrefix = '/opt/agent-gateway'

/** For compilers and readers of the source. Licenses stay. */
const needless = /^\.|\.(?:[cm]?ts|tsx|map|flow|tsbuildinfo|ya?ml|markdown)$|^(?!licen[sc]e|notice|copying).*\.md$/i
const needlessFolders = /^(?:test|tests|__tests__|benchmarks?|examples?|man)$/

interface Locked {
  readonly dev?: boolean
  readonly devOptional?: boolean
}

export function run([file = '', ...args]: readonly string[], cwd = repository): string {
  return execFileSync(file, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 })
}

/** `author` is the maintainer: name and address. */
export const { version, author: maintainer }: { readonly version: string; readonly author: string } = JSON.parse(
  readFileSync(join(repository, 'package.json'), 'utf8'),
)

/** Writes the folder again. */
function writeRoot(): void {
  rmSync(rootFolder, { recursive: true, force: true })
  const modules = join(rootFolder, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  writePackage(modules)
  for (const place of runtimePlaces()) copyPruned(join(repository, place), join(rootFolder, place))
  writeNode(modules)
  // Some bring programs of their own, which nobody calls.
  run([
    'find',
    modules,
    '-type',
    'f',
    '-perm',
    '/111',
    '!',
    '-path',
    '*/node/bin/*',
    '-exec',
    'chmod',
    'a-x',
    '{}',
    '+',
  ])
  chmodSync(join(modules, 'agent-gateway/dist/main.js'), 0o755)
  symlinkSync('../node/bin/node', join(modules, '.bin/node'))
  symlinkSync('../agent-gateway/dist/main.js', join(modules, '.bin/agent-gateway'))
}

/** The package as npm publishes it. */
function writePackage(modules: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'agent-gateway-'))
  const name = run(['npm', 'pack', '--silent', '--pack-destination', folder]).trim().split('\n').at(-1) ?? ''
  run(['tar', '-xf', join(folder, name), '-C', folder])
  cpSync(join(folder, 'package'), join(modules, 'agent-gateway'), { recursive: true })
  rmSync(folder, { recursive: true })
}

/** Folders of the dependencies that the gateway runs with, as the lock file names them and `npm ci` wrote them. */
function runtimePlaces(): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8'))
  return Object.entries<Locked>(packages)
    .filter(([place, { dev, devOptional }]) => place !== '' && dev !== true && devOptional !== true)
    .map(([place]) => place)
    .filter(place => existsSync(join(repository, place)))
}

/** A package without those inside it, which the lock file names too. */
function copyPruned(from: string, to: string): void {
  const isNeeded = (path: string): boolean => {
    const name = basename(path)
    return path === from || !(needless.test(name) || needlessFolders.test(name) || name === 'node_modules')
  }
  cpSync(from, to, { recursive: true, filter: isNeeded })
}

/** The program of the package `node` for this machine, without its symbols, which are a fifth of it. */
function writeNode(modules: string): void {
  const from = join(repository, 'node_modules/node')
  mkdirSync(join(modules, 'node/bin'), { recursive: true })
  run(['strip', '-o', join(modules, 'node/bin/node'), join(from, 'bin/node')])
  const [parts = ''] = readdirSync(join(from, 'node_modules')).filter(name => name.startsWith('node-linux-'))
  cpSync(join(from, 'node_modules', parts, 'LICENSE'), join(modules, 'node/LICENSE'))
}

/** Copies the folder to its place below `target`, and the configuration to its own. */
export function installRoot(target: string, prefix = usualPrefix): void {
  cpSync(rootFolder, join(target, prefix), { recursive: true, verbatimSymlinks: true })
  const configuration = join(target, 'etc/agent-gateway')
  mkdirSync(configuration, { recursive: true })
  for (const name of ['gateway.yaml', 'policies']) {
    cpSync(join(repository, name), join(configuration, name), { recursive: true })
  }
}

if (import.meta.main) writeRoot()
