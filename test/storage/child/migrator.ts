/** Migrates the file argv[2] by a step that changes the schema and then dies in the middle of it. */
import { sql } from 'kysely'
import { createMigrations } from '../../../src/storage/migrations.ts'
import { connect, migrateWhole } from '../../../src/storage/sqlite/database.ts'

await migrateWhole(connect(process.argv[2] ?? ''), {
  ...createMigrations({ bytes: 'blob', count: 'integer' }),
  '9999-dies': {
    async up(db) {
      await sql`alter table agents add column half text`.execute(db)
      await sql`update agents set half = 'done'`.execute(db)
      await sql`pragma cache_spill = 1`.execute(db)
      process.kill(process.pid, 'SIGKILL')
    },
  },
})
