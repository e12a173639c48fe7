/** How long certificates are valid. */
import { resolve } from 'node:path'
import { expiryOf, readCertificate } from '../../http/certificate.ts'
import { readAuthority } from '../../intercept/authority.ts'
import { readStoredAuthority } from '../../intercept/stored-authority.ts'
import { type CheckResult, type DoctorParts, fail, ok, warn } from './result.ts'

const day = 86_400_000
/** As in deploy/prometheus/alerts.yaml. */
const soonDays = 14

export async function certificateFindings(parts: DoctorParts): Promise<readonly CheckResult[]> {
  const { config, baseDirectory, clock } = parts
  const certificate = await readCertificate(config, baseDirectory)
  const now = clock.now()
  const remedy = 'Renew the files of System:Server:Tls, and send the gateway SIGHUP.'
  const own = certificate && validity('the certificate for clients', expiryOf(certificate) - now, remedy)
  const authority = await authorityOf(parts)
  const end = authority?.certificate.validToDate.getTime()
  const ofProxy =
    end && validity('the authority of the forward proxy', end - now, 'See agent-gateway ca rotate --help.')
  return [own, ofProxy].filter(finding => typeof finding === 'object')
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

function validity(what: string, leftMs: number, remedy: string): CheckResult {
  if (leftMs <= 0) return fail(`${what} has expired`, remedy)
  const days = Math.floor(leftMs / day)
  const text = `${what} is valid for ${days} ${days === 1 ? 'day' : 'days'}`
  return days < soonDays ? warn(text, remedy) : ok(text)
}
