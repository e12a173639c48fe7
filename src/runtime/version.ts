import { readFileSync } from 'node:fs'

export function ownVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return version
}
