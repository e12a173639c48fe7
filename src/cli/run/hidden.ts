import { resolve } from 'node:path'
import type { Configuration } from '../configuration.ts'
import type { Hidden } from './lock.ts'

/** Files of the gateway that a locked program has no business with: with them it could call as an admin, or change policies. */
export function hiddenOf({ config, file, baseDirectory }: Configuration): Hidden {
  const at = (path: string): string => resolve(baseDirectory, path)
  const { System, ForwardProxy, Upstreams, Storage, Policy } = config
  const files = [
    file?.path,
    System.Server.Tls.KeyFile,
    ForwardProxy.Ca.KeyFile,
    ...Upstreams.map(({ ValueFromFile }) => ValueFromFile),
  ]
  return {
    folders: [at(Storage.DataDirectory)],
    files: files.flatMap(path => (path === undefined ? [] : [at(path)])),
    unchangeable: [at(Policy.Directory)],
  }
}
