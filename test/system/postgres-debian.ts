/** The contract on the oldest version that Debian has, beside the newest one from npm. */

import t from 'tap'
import { debianPrograms, startPostgres } from '../fixtures/postgres.ts'
import { postgresContract } from '../storage/contract/postgres.ts'

const server = await startPostgres({ programs: debianPrograms() })
await postgresContract(t, server)
t.teardown(() => server.stop())
