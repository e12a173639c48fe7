/** As `clients.ts`, with `--lock`. */
import t from 'tap'
import { testMatrix } from '../clients/run/driver.ts'

await testMatrix(t, { isLocked: true })
