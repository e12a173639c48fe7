/** The key that signs pushes: it lies sealed in the store. Threat T86. */
import t from 'tap'
import { openVapid, type VapidOptions } from '../../../src/hitl/push/vapid.ts'

const sealingKeys = [new Uint8Array(32)] as const
/** A store with this key, which replaces it when told that it cannot be used. */
function storeOf(first?: Uint8Array, replaces = true) {
  let stored = first
  const key: VapidOptions['store']['key'] = async (sealed, unusable) => {
    if (stored === undefined || (replaces && unusable !== undefined && Buffer.compare(stored, unusable) === 0))
      stored = sealed
    return stored
  }
  return { key }
}
const reports: string[] = []
const options = {
  sealingKeys,
  clock: { now: () => 0 },
  contact: 'https://gateway.example',
  report: (what: string) => void reports.push(what),
}

t.test('the key is made once and opened from then on', async t => {
  const store = storeOf()
  const [first, second] = [await openVapid({ ...options, store }), await openVapid({ ...options, store })]
  t.equal(first.publicKey, second.publicKey)
  const other = { ...options, sealingKeys: [Buffer.alloc(32, 1), ...sealingKeys] as const }
  t.equal((await openVapid({ ...other, store })).publicKey, first.publicKey, 'by the sealing key of before')
  t.strictSame(reports, [])
})

t.test('a key that cannot be opened is replaced, and people are told to switch pushes on again', async t => {
  const store = storeOf(Buffer.from('sealed by another key'))
  const { publicKey } = await openVapid({ ...options, store })
  t.match(reports, [/cannot be opened: people must switch pushes on again/])
  t.equal((await openVapid({ ...options, store })).publicKey, publicKey)
  await t.rejects(openVapid({ ...options, store: storeOf(Buffer.from('x'), false) }), /another sealing key/)
})
