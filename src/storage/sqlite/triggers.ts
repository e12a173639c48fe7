import { sql } from 'kysely'

/** Whoever changes or removes a request, its bytes count with it. */
export const triggers = [
  sql`create trigger hitl_bytes after update of bytes on hitl when new.bytes <> old.bytes begin
    update hitl_bytes set bytes = bytes + new.bytes - old.bytes where "agentId" in ('', old."agentId");
  end`,
  sql`create trigger hitl_gone after delete on hitl begin
    update hitl_bytes set bytes = bytes - old.bytes where "agentId" in ('', old."agentId");
  end`,
]
