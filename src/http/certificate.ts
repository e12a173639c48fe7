import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { StartupError } from '../base/refusals.ts'
import type { Config } from '../config/schema.ts'
import { readPrivateFile } from '../runtime/private-file.ts'
import type { Certificate } from './servers.ts'

const setting = 'System:Server:Tls'

/**
 * The certificate for clients over TCP; undefined when they use plain HTTP.
 *
 * @throws StartupError when a file cannot be read, others can read the key, or the two do not belong together
 */
export async function readCertificate(config: Config, baseDirectory: string): Promise<Certificate | undefined> {
  const { CertificateFile, KeyFile } = config.System.Server.Tls
  if (CertificateFile === undefined || KeyFile === undefined) return undefined
  const certPath = resolve(baseDirectory, CertificateFile)
  const keyPath = resolve(baseDirectory, KeyFile)
  const cert = await readFile(certPath, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(`${setting}:CertificateFile: ${certPath} cannot be read (${error.code}).`)
  })
  const key = await readPrivateFile(keyPath)
  if (key === undefined) throw new StartupError(`${setting}:KeyFile: ${keyPath} does not exist.`)
  checkPair({ cert, key }, certPath, keyPath)
  return { cert, key }
}

/**
 * The same for the start of the gateway: an expired certificate is refused. A thread that starts later may use one.
 *
 * @param now milliseconds since the epoch
 */
export async function readCurrentCertificate(
  config: Config,
  baseDirectory: string,
  now: number,
): Promise<Certificate | undefined> {
  const certificate = await readCertificate(config, baseDirectory)
  if (certificate === undefined) return undefined
  const expiry = expiryOf(certificate)
  if (expiry > now) return certificate
  throw new StartupError(
    `${setting}:CertificateFile: the certificate expired on ${new Date(expiry).toISOString()}. Renew it.`,
  )
}

/** End of validity of a certificate, milliseconds since the epoch. */
export const expiryOf = ({ cert }: Certificate): number => new X509Certificate(cert).validToDate.getTime()

/** Names and end of validity of a certificate, for people. */
export function describeCertificate({ cert }: Certificate): string {
  const { subjectAltName, subject, validToDate } = new X509Certificate(cert)
  return `${subjectAltName ?? subject}, valid until ${validToDate.toISOString()}`
}

function checkPair(pair: Certificate, certPath: string, keyPath: string): void {
  const certificate = parsed(
    () => new X509Certificate(pair.cert),
    `${setting}:CertificateFile: ${certPath} contains no certificate in PEM form.`,
  )
  const key: KeyObject = parsed(
    () => createPrivateKey(pair.key),
    `${setting}:KeyFile: ${keyPath} contains no private key in PEM form without a passphrase.`,
  )
  if (!certificate.checkPrivateKey(key)) {
    throw new StartupError(`${setting}: the key in ${keyPath} does not belong to the certificate in ${certPath}.`)
  }
  parsed(() => createSecureContext(pair), `${setting}: ${certPath} cannot be used: the chain is damaged or too weak.`)
}

function parsed<T>(parse: () => T, problem: string): T {
  try {
    return parse()
  } catch {
    throw new StartupError(problem)
  }
}
