import { type Kysely, sql } from 'kysely'

/** Whoever changes or removes a request, its bytes count with it. */
export async function createTriggers(db: Kysely<unknown>): Promise<void> {
  await sql`create trigger hitl_bytes after update of bytes on hitl when new.bytes <> old.bytes begin
    update hitl_totals set bytes = bytes + new.bytes - old.bytes where "agentId" in ('', old."agentId");
  end`.execute(db)
  await sql`create trigger hitl_gone after delete on hitl begin
    update hitl_totals set bytes = bytes - old.bytes where "agentId" in ('', old."agentId");
  end`.execute(db)
}
