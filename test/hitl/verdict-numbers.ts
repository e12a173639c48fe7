import t from 'tap'
import { verdictNumbers, verdictsWithin } from '../../src/hitl/verdict-numbers.ts'
import type { HitlEnd } from '../../src/storage/store.ts'

const end = (status: HitlEnd['status'], decidedBy: string | null, seconds: number): HitlEnd => ({
  ...{ status, decidedBy, createdAt: 1_000, decidedAt: 1_000 + seconds * 1_000 },
})

t.test('verdicts are counted by reviewer, and what nobody decided apart', async t => {
  const ends = [
    ...[end('Approved', 'ada', 4), end('Denied', 'ada', 90), end('Approved', 'grace', 10)],
    ...[end('Expired', null, 3_600), end('Withdrawn', null, 1), end('Approved', 'ada', 30)],
  ]
  t.strictSame(verdictNumbers(ends), {
    ...{ approved: 3, denied: 1, expired: 1, withdrawn: 1, medianSeconds: 30 },
    reviewers: [
      { id: 'ada', verdicts: 3, medianSeconds: 30 },
      { id: 'grace', verdicts: 1, medianSeconds: 10 },
    ],
  })
  t.match(verdictNumbers([end('Denied', null, 4)]), { reviewers: [{ id: '', verdicts: 1 }] })
  t.match(verdictNumbers([]), { approved: 0, medianSeconds: null, reviewers: [] })
})

t.test('the time that is meant begins where the numbers do', async t => {
  const read = (isWhole: boolean, RetentionSeconds = 86_400) => {
    const asked: number[] = []
    const hitl = {
      async ends(since: number) {
        asked.push(since)
        return { ends: [end('Denied', 'ada', 4)], isWhole }
      },
    }
    const options = { store: { hitl }, clock: { now: () => 90_000_000 }, settings: { RetentionSeconds } }
    return verdictsWithin(options as unknown as Parameters<typeof verdictsWithin>[0], 3_600_000).then(({ since }) => [
      ...asked,
      since,
    ])
  }
  t.strictSame(await read(true), [86_400_000, 86_400_000])
  t.strictSame(await read(true, 60), [89_940_000, 89_940_000], 'what is older was deleted')
  t.strictSame(await read(false), [86_400_000, 5_000], 'more than one look reads')
})
