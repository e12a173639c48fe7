/** What every engine must do: the contract of src/storage/store.ts. */
import type { Test } from '../fixtures/tap.ts'
import { agents } from './contract/agents.ts'
import { audit } from './contract/audit.ts'
import { grants } from './contract/grants.ts'
import { policies } from './contract/policies.ts'
import { queue } from './contract/queue.ts'
import type { Engine } from './contract/samples.ts'
import { verdicts } from './contract/verdicts.ts'

export function contract(t: Test, engine: Engine): void {
  agents(t, engine)
  policies(t, engine)
  queue(t, engine)
  verdicts(t, engine)
  grants(t, engine)
  audit(t, engine)
}
