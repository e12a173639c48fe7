/** Migrates the file argv[2] by a step that changes the schema and then dies in the middle of it. */
import { sql } from 'kysely'
import { connect, migrateWhole, migrations } from '../../../src/storage/sqlite/database.ts'

await migrateWhole(connect(process.argv[2] ?? ''), {
  ...migrations,
  '9999-dies': {
    async up(db) {
      await sql`alter table agents add column half text`.execute(db)
      await sql`update agents set half = 'done'`.execute(db)
      await sql`pragma cache_spill = 1`.execute(db)
      process.kill(process.pid, 'SIGKILL')
    },
  },
})
