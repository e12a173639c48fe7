/**
 * The authority whose certificates stand in for those of upstreams. Programs that are to be intercepted trust it. Its key and
 * certificates are in one file of the data directory, or in two files that the configuration names.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { StartupError } from '../base/refusals.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import { createPermits, type NameConstraints } from './name-constraints.ts'
import type { Signer } from './x509.ts'

export interface Authority {
  /** Whose key signs the leafs. */
  readonly certificate: X509Certificate
  readonly signer: Signer
  /** Certificates that a server sends behind a leaf, PEM: those between it and a root, which clients have. */
  readonly chain: string
  /** What programs are to trust, PEM: the certificate in use first, then those of before a rotation. */
  readonly bundle: string
  /** Which hosts it may issue certificates for; undefined: all. */
  readonly constraints: NameConstraints | undefined
  /** @param host a name in lower case, or an address without brackets */
  readonly permits: (host: string) => boolean
}

/** Paths of the files that the configuration names, PEM. */
export interface AuthorityFiles {
  /** The authority first. What follows is trusted as well, and is sent behind leafs as far as it is their chain. */
  readonly certificateFile: string
  readonly keyFile: string
}

const setting = 'ForwardProxy:Ca'

/**
 * The authority of two files.
 *
 * @throws StartupError when a file cannot be read, others can read the key, or the two cannot be used
 */
export async function readAuthority({ certificateFile, keyFile }: AuthorityFiles): Promise<Authority> {
  const certificates = await readFile(certificateFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`${setting}:CertificateFile: ${certificateFile} cannot be read (${error.code}).`)
  })
  const key = await readPrivateFile(keyFile)
  if (key === undefined) throw new StartupError(`${setting}:KeyFile: ${keyFile} does not exist.`)
  return parseAuthority(
    { certificates, key },
    {
      certificates: `${setting}:CertificateFile: ${certificateFile}`,
      key: `${setting}:KeyFile: ${keyFile}`,
    },
  )
}

/** Of certificates and key: their PEM text, or how messages name them. */
interface Pair {
  readonly certificates: string
  readonly key: string
}

/**
 * @param pair PEM
 * @throws StartupError
 */
export async function parseAuthority(pair: Pair, names: Pair): Promise<Authority> {
  const certificates = parseCertificates(pair.certificates, names.certificates)
  const [certificate] = certificates
  if (certificate === undefined) throw new StartupError(`${names.certificates} contains no certificate in PEM form.`)
  const key = parseKey(pair.key, names.key)
  if (!certificate.checkPrivateKey(key)) {
    throw new StartupError(`${names.key}: the key does not belong to the first certificate.`)
  }
  if (!certificate.ca) {
    throw new StartupError(
      `${names.certificates}: the first certificate must be one of an authority (CA:TRUE), which may sign certificates.`,
    )
  }
  const { createSigner, readConstraints } = await import('./x509.ts')
  const signer = createSigner(key)
  if (signer === undefined) {
    throw new StartupError(`${names.key}: the key must be EC (P-256 or P-384), or RSA of 2048 bits or more.`)
  }
  const constraints = readConstraints(certificate)
  return {
    ...{ certificate, signer, constraints },
    chain: pemOf(chainOf(certificates)),
    bundle: pemOf(certificates),
    permits: createPermits(constraints),
  }
}

function parseCertificates(text: string, name: string): readonly X509Certificate[] {
  try {
    return certificatesIn(text).map(one => new X509Certificate(one))
  } catch {
    throw new StartupError(`${name} contains a certificate that cannot be read.`)
  }
}

/** The certificates in a text that may have others parts, each in PEM form. */
export const certificatesIn = (text: string): readonly string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []

function parseKey(text: string, name: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch {
    throw new StartupError(`${name} contains no private key in PEM form without a passphrase.`)
  }
}

/** The first certificate, as long as each is issued by the next, without a root. */
function chainOf(certificates: readonly X509Certificate[]): readonly X509Certificate[] {
  const end = certificates.findIndex(
    (one, index) => certificates[index + 1] === undefined || !isIssued(one, certificates[index + 1]!),
  )
  return certificates.slice(0, end + 1).filter(one => !isIssued(one, one))
}

const isIssued = (one: X509Certificate, by: X509Certificate) => one.checkIssued(by) && one.verify(by.publicKey)

const pemOf = (certificates: readonly X509Certificate[]): string => certificates.map(String).join('')

/** For people. */
export function describeAuthority({ certificate, constraints }: Authority): string {
  const { fingerprint256, validToDate } = certificate
  const limits = constraints === undefined ? '' : ', limited to some hosts'
  return `SHA-256 ${fingerprint256}, valid until ${validToDate.toISOString()}${limits}`
}
