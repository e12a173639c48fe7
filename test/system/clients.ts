/**
 * Real clients under `agent-gateway run`: those that are installed quickly, in the modes that are quick. `npm run test:clients`
 * calls all of them in all modes, and `clients-locked.ts` those under `--lock`.
 */
import t from 'tap'
import { testMatrix } from '../clients/run/driver.ts'

await testMatrix(t, { isLocked: false })
