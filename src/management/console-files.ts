import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { refuse } from '../base/refusals.ts'
import { acceptsGzip } from '../http/accepts-gzip.ts'
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
  '.webmanifest': 'application/manifest+json',
}

/** An identity provider at which people sign in to the console. */
export interface ConsoleProvider {
  readonly authority: string
  readonly clientId: string
  readonly scope: string
}

/** The policy of the documentation; text must not become markup. Of other hosts, the page calls only the identity provider. */
function securityPolicy({ provider, hasPush }: Omit<ConsoleFiles, 'folder'>): string {
  const connect =
    provider === undefined ? "connect-src 'self'" : `connect-src 'self' ${new URL(provider.authority).origin}`
  const policy = contentSecurityPolicy.replace("connect-src 'self'", connect)
  // The one policy of the page trusts its worker alone.
  const worker = hasPush ? "worker-src 'self'; trusted-types worker" : "worker-src 'none'; trusted-types 'none'"
  return `${policy}; manifest-src 'self'; require-trusted-types-for 'script'; ${worker}`
}

const isolation = [
  ...['Referrer-Policy', 'no-referrer'],
  ...['Cross-Origin-Opener-Policy', 'same-origin'],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
]

const pageHeaders = (settings: Omit<ConsoleFiles, 'folder'>) => [
  ...['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-cache'],
  ...['Content-Security-Policy', securityPolicy(settings), 'X-Frame-Options', 'DENY'],
  ...isolation,
]

interface File {
  readonly headers: readonly string[]
  readonly plain: Buffer
  readonly zipped: Buffer
}

const notBuilt =
  'The console is not built. Run "npm run build:console" where the gateway was installed, then restart it.'

export interface ConsoleFiles {
  /** Where the built console lies. */
  readonly folder: string
  readonly provider: ConsoleProvider | undefined
  /** Whether browsers may get pushes: they need a service worker. */
  readonly hasPush: boolean
  /** Whether people bind accounts of Slack. */
  readonly hasSlack: boolean
}

/** The pages of the console. Files are read once, at the start. */
export function consoleFileHandlers({ folder, ...settings }: ConsoleFiles): Handlers['open'] {
  const page = existsSync(join(folder, 'index.html')) ? readPage(folder, settings) : undefined
  const assets = page === undefined ? new Map<string, File>() : readAssets(join(folder, 'assets'))
  return {
    // Paths in the page are relative: a proxy in front may have put a prefix before it.
    getConsoleRoot: () => ({ status: 308, headers: ['Location', 'console/', ...isolation] }),
    returnFromConsent: ({ named, req }) => ({ status: 303, headers: ['Location', endOf(named, req), ...unkept] }),
    getConsole: call => (page === undefined ? refuse('not_found', notBuilt) : reply(page, call)),
    getConsoleAsset(call) {
      const file = assets.get(call.named)
      return file === undefined ? refuse('not_found') : reply(file, call)
    },
  }
}

const unkept = ['Cache-Control', 'no-store', ...isolation]

/** What a server adds to the address that it comes back to (RFC 6749 section 4.1.2, RFC 9207). */
const returned = ['state', 'code', 'iss', 'error']

/** The page that ends a consent. A browser sends what is behind the `#` to nobody. */
function endOf(name: string, { url = '' }: OpenCall['req']): string {
  const { searchParams } = new URL(url, 'http://gateway')
  const kept = new URLSearchParams()
  for (const key of returned) for (const value of searchParams.getAll(key)) kept.append(key, value)
  return `../#/connected/${encodeURIComponent(name)}?${kept}`
}

/** The page, with the settings of the identity provider in it. */
function readPage(folder: string, settings: Omit<ConsoleFiles, 'folder'>): File {
  const { provider, hasPush, hasSlack } = settings
  const text = readFileSync(join(folder, 'index.html'), 'utf8')
  const escaped = provider && JSON.stringify(provider).replace(/[&"<>]/g, found => `&#${found.charCodeAt(0)};`)
  const metas = [
    ...(escaped === undefined ? [] : [`<meta name="provider" content="${escaped}">`]),
    ...(hasPush ? ['<meta name="push" content="on">'] : []),
    ...(hasSlack ? ['<meta name="slack" content="on">'] : []),
  ]
  const page = metas.length === 0 ? text : text.replace('</head>', () => `${metas.join('\n')}\n</head>`)
  return fileOf(Buffer.from(page), pageHeaders(settings))
}

/** Names have the hash of the contents in them. */
function readAssets(folder: string): ReadonlyMap<string, File> {
  const files = readdirSync(folder).flatMap(name => {
    const type = types[extname(name)]
    if (type === undefined) return []
    const headers = ['Content-Type', type, 'Cache-Control', 'public, max-age=31536000, immutable', ...isolation]
    return [[name, fileOf(readFileSync(join(folder, name)), headers)] as const]
  })
  return new Map(files)
}

function fileOf(plain: Buffer, headers: readonly string[]): File {
  return { headers: [...headers, 'Vary', 'Accept-Encoding'], plain, zipped: gzipSync(plain, { level: 9 }) }
}

function reply({ headers, plain, zipped }: File, { req }: OpenCall): Reply {
  if (!acceptsGzip(req)) return { status: 200, headers, body: plain }
  return { status: 200, headers: [...headers, 'Content-Encoding', 'gzip'], body: zipped }
}
