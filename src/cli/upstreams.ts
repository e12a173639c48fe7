import type { Environment } from '../config/environment.ts'
import { openUpstreams } from '../gateway/upstreams.ts'
import { systemClock } from '../runtime/clock.ts'
import { systemLookup } from '../upstream/system-lookup.ts'
import type { Configuration } from './configuration.ts'

/** With what a command calls other servers: as the gateway does. */
export const upstreamsOf = ({ config, baseDirectory }: Configuration, env: Environment) =>
  openUpstreams(config, baseDirectory, { clock: systemClock, lookup: systemLookup, env })
