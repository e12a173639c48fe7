/** Files by which programs trust the authority of the gateway beside those that they trust already. */
import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import type { Environment } from '../../config/environment.ts'

export interface TrustFiles {
  /** The authority, and those that the caller added to node's, PEM. */
  readonly extra: string
  /** The authority, the roots of the system, and those that the caller added, PEM. */
  readonly bundle: string
  /** The same as a trust store of Java. */
  readonly javaStore: string
}

/** Where systems keep the bundle of their roots; the first that is there. */
const systemBundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
/** Variables in which callers have named bundles of their own. */
const inheritedNames = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS']

/** Path of the bundle of the system; undefined when there is none. */
export const systemBundle = (): string | undefined => systemBundles.find(path => readPem(path) !== undefined)

/**
 * Writes the files into a folder.
 *
 * @param authority certificates of the gateway, PEM
 */
export async function writeTrust(folder: string, authority: string, env: Environment): Promise<TrustFiles> {
  const system = systemBundle()
  const roots = system === undefined ? [...rootCertificates] : certificatesIn(readPem(system) ?? '')
  const inherited = inheritedNames.flatMap(name => certificatesIn(readPem(env[name]) ?? ''))
  const own = certificatesIn(authority)
  const added = certificatesIn(readPem(env['NODE_EXTRA_CA_CERTS']) ?? '')
  const all = unique([...own, ...roots, ...inherited])
  const files = {
    extra: join(folder, 'ca.pem'),
    bundle: join(folder, 'ca-bundle.pem'),
    javaStore: join(folder, 'ca-bundle.p12'),
  }
  writeFileSync(files.extra, unique([...own, ...added]).join('\n'))
  writeFileSync(files.bundle, all.join('\n'))
  const { writeTrustStore } = await import('../../intercept/trust-store.ts')
  writeFileSync(files.javaStore, writeTrustStore(all.flatMap(readable)))
  return files
}

/** Undefined when there is no such file, or it has no certificate: some tools also take a folder. */
function readPem(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  try {
    const text = readFileSync(path, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : undefined
  } catch {
    return undefined
  }
}

const certificatesIn = (text: string): readonly string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []

const unique = (certificates: readonly string[]): readonly string[] => [
  ...new Set(certificates.map(text => `${text.replaceAll('\r', '')}\n`)),
]

/** Systems keep some that only their own library reads. */
function readable(text: string): readonly X509Certificate[] {
  try {
    return [new X509Certificate(text)]
  } catch {
    return []
  }
}
