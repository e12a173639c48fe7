/** How long certificates are valid. */
import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { readCertificate } from '../../http/certificate.ts'
import { readAuthority } from '../../intercept/authority.ts'
import { readStoredAuthority } from '../../intercept/stored-authority.ts'
import { type CheckResult, clockOf, type DoctorParts, fail, ok, warn } from './result.ts'

const day = 86_400_000
/** As in deploy/prometheus/alerts.yaml. */
const soonDays = 14

export async function certificateFindings(parts: DoctorParts): Promise<readonly CheckResult[]> {
  const { config, baseDirectory, clock } = parts
  const certificate = await readCertificate(config, baseDirectory)
  const authority = await authorityOf(parts)
  const remedies = {
    own: 'Renew the files of System:Server:Tls, and send the gateway SIGHUP.',
    authority: 'See agent-gateway ca rotate --help.',
  }
  const validityOf = validity(clock.now())
  return [
    ...(certificate
      ? [validityOf('the certificate for clients', new X509Certificate(certificate.cert), remedies.own)]
      : []),
    ...(authority ? [validityOf('the authority of the forward proxy', authority.certificate, remedies.authority)] : []),
  ]
}

/** It is not made when it is not there. */
async function authorityOf({ config, baseDirectory }: DoctorParts) {
  const { Enabled, Ca } = config.ForwardProxy
  if (!Enabled) return undefined
  if (Ca.CertificateFile === undefined || Ca.KeyFile === undefined)
    return readStoredAuthority(resolve(baseDirectory, config.Storage.DataDirectory))
  return readAuthority({
    certificateFile: resolve(baseDirectory, Ca.CertificateFile),
    keyFile: resolve(baseDirectory, Ca.KeyFile),
  })
}

const validity =
  (now: number) =>
  (what: string, { validFromDate, validToDate }: X509Certificate, remedy: string): CheckResult => {
    if (validFromDate.getTime() > now) {
      return fail(`${what} is not valid before ${validFromDate.toISOString()}`, clockOf(now))
    }
    const leftMs = validToDate.getTime() - now
    if (leftMs <= 0) return fail(`${what} has expired`, `${remedy} ${clockOf(now)}`)
    const days = Math.floor(leftMs / day)
    const text = `${what} is valid for ${days} ${days === 1 ? 'day' : 'days'}`
    return days < soonDays ? warn(text, remedy) : ok(text)
  }
