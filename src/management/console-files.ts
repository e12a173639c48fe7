import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { refuse } from '../errors.ts'
import type { Reply } from '../http/respond.ts'
import type { Handlers, OpenCall } from './call.ts'
import { contentSecurityPolicy } from './docs.ts'

/** Where `npm run build:console` puts the console: beside this part in the package, in dist/ of a repository. */
export const builtConsole = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/console/' : '../console/', import.meta.url),
)

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The policy of the documentation, and text must not become markup. */
const consoleSecurityPolicy = `${contentSecurityPolicy}; require-trusted-types-for 'script'; trusted-types 'none'`

const isolation = [
  ...['Referrer-Policy', 'no-referrer'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
]

const pageHeaders = [
  ...['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-cache'],
  ...['Content-Security-Policy', consoleSecurityPolicy, 'X-Frame-Options', 'DENY'],
  ...isolation,
]

interface File {
  readonly headers: readonly string[]
  readonly plain: Buffer
  readonly zipped: Buffer
}

const notBuilt =
  'The console is not built. Run "npm run build:console" where the gateway was installed, then restart it.'

/**
 * The pages of the console. Files are read once, at the start.
 *
 * @param folder where the built console lies
 */
export function consoleFileHandlers(folder: string): Handlers['open'] {
  const page = existsSync(join(folder, 'index.html')) ? readFile(join(folder, 'index.html'), pageHeaders) : undefined
  const assets = page === undefined ? new Map<string, File>() : readAssets(join(folder, 'assets'))
  return {
    // Paths in the page are relative: a proxy in front may have put a prefix before it.
    getConsoleRoot: () => ({ status: 308, headers: ['Location', 'console/', ...isolation] }),
    getConsole: call => (page === undefined ? refuse('not_found', notBuilt) : reply(page, call)),
    getConsoleAsset(call) {
      const file = assets.get(call.named)
      return file === undefined ? refuse('not_found') : reply(file, call)
    },
  }
}

/** Names have the hash of the contents in them. */
function readAssets(folder: string): ReadonlyMap<string, File> {
  const files = readdirSync(folder).flatMap(name => {
    const type = types[extname(name)]
    if (type === undefined) return []
    const headers = ['Content-Type', type, 'Cache-Control', 'public, max-age=31536000, immutable', ...isolation]
    return [[name, readFile(join(folder, name), headers)] as const]
  })
  return new Map(files)
}

function readFile(path: string, headers: readonly string[]): File {
  const plain = readFileSync(path)
  return { headers: [...headers, 'Vary', 'Accept-Encoding'], plain, zipped: gzipSync(plain, { level: 9 }) }
}

function reply({ headers, plain, zipped }: File, { req }: OpenCall): Reply {
  const acceptsGzip = /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))|,|$)/i.test(
    String(req.headers['accept-encoding'] ?? ''),
  )
  if (!acceptsGzip) return { status: 200, headers, body: plain }
  return { status: 200, headers: [...headers, 'Content-Encoding', 'gzip'], body: zipped }
}
