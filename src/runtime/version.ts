import { readFileSync } from 'node:fs'

/** The version of the package that this file is in. */
export function ownVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return version
}
