/** The authority that a gateway makes for itself, in its data directory. */
import { generateKeyPair, randomBytes, type X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { StartupError } from '../base/refusals.ts'
import { readPrivateFile, writePrivateFile } from '../runtime/private-file.ts'
import { type Authority, parseAuthority } from './authority.ts'
import type { NameConstraints } from './name-constraints.ts'

const dayMs = 86_400_000
const validDays = 3_650

/** Key and certificates in one file, so that they are always those of each other. */
export const authorityFile = (dataDirectory: string): string => join(dataDirectory, 'ca.key')

/**
 * The stored authority; undefined when there is none.
 *
 * @throws StartupError when others can read the file, or its content cannot be used
 */
export async function readStoredAuthority(dataDirectory: string): Promise<Authority | undefined> {
  const path = authorityFile(dataDirectory)
  const text = await readPrivateFile(path)
  return text === undefined
    ? undefined
    : parseAuthority({ certificates: text, key: text }, { certificates: path, key: path })
}

/**
 * The same; made when there is none. Of several that begin at once, all get that of the first.
 *
 * @param now milliseconds since the epoch
 */
export async function openStoredAuthority(dataDirectory: string, now: number): Promise<Authority> {
  const found = await readStoredAuthority(dataDirectory)
  if (found !== undefined) return found
  await writePrivateFile(authorityFile(dataDirectory), await makeAuthority(now, undefined), false)
  return readStored(dataDirectory)
}

/**
 * Makes an authority where there is none.
 *
 * @throws StartupError when there is one
 */
export async function createStoredAuthority(
  dataDirectory: string,
  now: number,
  constraints: NameConstraints | undefined,
): Promise<Authority> {
  const path = authorityFile(dataDirectory)
  if (await writePrivateFile(path, await makeAuthority(now, constraints), false)) return readStored(dataDirectory)
  throw new StartupError(`${path} is there already. To replace it: agent-gateway ca rotate`)
}

export interface Rotation {
  /** Which hosts the new one may issue certificates for; undefined: all. */
  readonly constraints: NameConstraints | undefined
  /** Whether the certificate of before stays in the bundle. */
  readonly keepsOld: boolean
}

/** A new authority that is not yet in its file. */
export type PreparedAuthority = Awaited<ReturnType<typeof prepareRotation>>

/**
 * Makes an authority that is to replace the stored one.
 *
 * @param old the one in use
 */
export async function prepareRotation(
  dataDirectory: string,
  now: number,
  { old, constraints, keepsOld }: Rotation & { readonly old: Authority },
) {
  const path = authorityFile(dataDirectory)
  const kept = keepsOld && isValid(old.certificate, now) ? String(old.certificate) : ''
  const text = (await makeAuthority(now, constraints)) + kept
  return {
    authority: await parseAuthority({ certificates: text, key: text }, { certificates: path, key: path }),
    /** Puts it in the place of the stored one. */
    async store() {
      await writePrivateFile(path, text, true)
    },
  }
}

export const isValid = ({ validToDate }: X509Certificate, now: number): boolean => validToDate.getTime() > now

async function readStored(dataDirectory: string): Promise<Authority> {
  const authority = await readStoredAuthority(dataDirectory)
  if (authority !== undefined) return authority
  throw new StartupError(`${authorityFile(dataDirectory)} was removed. Start again.`)
}

/** Key and certificate, PEM. The name is another one each time: clients look for issuers by name. */
async function makeAuthority(now: number, constraints: NameConstraints | undefined): Promise<string> {
  const { writeAuthority } = await import('./x509.ts')
  const { privateKey: key } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  const commonName = `agent-gateway CA ${new Date(now).toISOString().slice(0, 10)} ${randomBytes(4).toString('hex')}`
  const validity = { from: now - dayMs, to: now + validDays * dayMs }
  const certificate = await writeAuthority({ commonName, key, validity, constraints })
  return `${key.export({ type: 'pkcs8', format: 'pem' })}${certificate}`
}
