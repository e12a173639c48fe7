import type { Operations } from '../schema.ts'
import type { Store } from '../store.ts'

/** Over a page, so that it needs free space and not only an overwrite. */
const payload = new Uint8Array(8192)

export const probe: Operations<Pick<Store, 'ping'>> = {
  async ping(db) {
    await db.insertInto('probe').values({ payload }).execute()
    await db.deleteFrom('probe').execute()
  },
}
