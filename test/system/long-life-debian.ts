/** The oldest version that Debian has, beside the newest one from npm: each plans in its own way. */

import t from 'tap'
import { debianPrograms, startPostgres } from '../fixtures/postgres.ts'
import { runs } from '../fixtures/runs.ts'
import { longLifeContract } from '../storage/long-life/server.ts'

const server = await startPostgres({ programs: debianPrograms() })
longLifeContract(t, { past: runs(1_000_000, 50_000), waiting: 10_000 }, server)
t.teardown(() => server.stop())
