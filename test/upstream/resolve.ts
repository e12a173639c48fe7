import t from 'tap'
import { createResolver, type Lookup } from '../../src/upstream/resolve.ts'
import { createClock } from '../fixtures/clock.ts'

t.test('a literal address is its own answer, at once and without a look-up', async t => {
  const resolver = createResolver({ clock: createClock(), lookup: async () => t.fail('asked') as never })
  t.match(resolver.resolve('127.0.0.1'), { addresses: ['127.0.0.1'] })
  t.match(resolver.resolve('[::1]'), { addresses: ['::1'] })
})

t.test('one look-up serves all who ask, and its answer is the same object while it is valid', async t => {
  const clock = createClock()
  let asked = 0
  const resolver = createResolver({
    clock,
    lookup: async () => {
      asked += 1
      return ['10.0.0.1', '10.0.0.2']
    },
  })
  const [one, two] = await Promise.all([resolver.resolve('a.example'), resolver.resolve('a.example')])
  t.equal(one, two)
  clock.advance(29_999)
  t.equal(resolver.resolve('a.example'), one)
  clock.advance(1)
  t.not(await resolver.resolve('a.example'), one)
  t.equal(asked, 2)
})

t.test('a name without an address, and one that cannot be resolved, are not found, and asked for again', async t => {
  let answer: () => Promise<readonly string[]> = async () => []
  const resolver = createResolver({ clock: createClock(), lookup: () => answer() })
  t.strictSame(await resolver.resolve('a.example'), { failed: 'name_not_found' })
  answer = () => Promise.reject(new Error('SERVFAIL'))
  t.strictSame(await resolver.resolve('a.example'), { failed: 'name_not_found' })
  answer = async () => ['10.0.0.1']
  t.match(await resolver.resolve('a.example'), { addresses: ['10.0.0.1'] })
})

/** A lookup that never answers for names that begin with `dead`, and says so when it is given up. */
function openSlow(more: { readonly timeoutMs?: number; readonly concurrency?: number } = {}) {
  const asked: string[] = []
  const givenUp: string[] = []
  const resolver = createResolver({
    clock: createClock(),
    timeoutMs: 20,
    ...more,
    lookup(name, signal) {
      asked.push(name)
      if (!name.startsWith('dead')) return Promise.resolve(['10.0.0.1'])
      signal.addEventListener('abort', () => givenUp.push(name))
      return new Promise(() => {})
    },
  })
  return { resolver, asked, givenUp }
}

const deadNames = (count: number) => Array.from({ length: count }, (_, i) => `dead${i}.example`)

t.test('a silent look-up is given up after its time, and its place goes to the next', async t => {
  const { resolver, asked, givenUp } = openSlow({ concurrency: 2 })
  const names = deadNames(2)
  const dead = names.map(name => resolver.resolve(name, 'a'))
  const next = resolver.resolve('well.example', 'b')
  t.strictSame(asked, names, 'so many at once')
  t.strictSame(await Promise.all(dead), Array(2).fill({ failed: 'name_timeout' }))
  t.match(await next, { addresses: ['10.0.0.1'] })
  t.strictSame(givenUp, names)
})

t.test('a look-up is told which names may stand for a shorter one', async t => {
  const lookup: Lookup = async (name, _signal, mayFind) => (mayFind?.(`${name}.inside`) === false ? [] : ['10.0.0.1'])
  const resolver = createResolver({ clock: createClock(), lookup, mayFind: name => name !== 'db.inside' })
  t.strictSame(await resolver.resolve('db'), { failed: 'name_not_found' })
  t.match(await resolver.resolve('web'), { addresses: ['10.0.0.1'] })
})

t.test('what was found before the names changed that may stand for another is forgotten', async t => {
  const given: ((addresses: readonly string[]) => void)[] = []
  const lookup: Lookup = () => new Promise(resolve => given.push(resolve))
  const resolver = createResolver({ clock: createClock(), lookup })
  const first = resolver.resolve('web')
  resolver.forget()
  const second = resolver.resolve('web')
  given[0]?.(['10.0.0.1'])
  t.match(await first, { addresses: ['10.0.0.1'] })
  t.equal(resolver.resolve('web'), second, 'the look-up that was under way keeps nothing')
  given[1]?.(['10.0.0.2'])
  t.match(await second, { addresses: ['10.0.0.2'] })
  t.match(resolver.resolve('web'), { addresses: ['10.0.0.2'] })
})

t.test('silent name servers are distinguished from a name that does not exist', async t => {
  const silent = Object.assign(new Error('queryA ETIMEOUT'), { code: 'ETIMEOUT' })
  const resolver = createResolver({ clock: createClock(), lookup: () => Promise.reject(silent) })
  t.strictSame(await resolver.resolve('a.example'), { failed: 'name_timeout' })
})

t.test('1,100 dead names of one agent delay no name of another, and recover at once', async t => {
  const { resolver, asked } = openSlow()
  const answers = deadNames(1_100).map(name => resolver.resolve(name, 'hostile'))
  t.equal(asked.length, 32, 'one agent has so many at once')
  const healthy = resolver.resolve('well.example', 'victim')
  t.equal(asked.at(-1), 'well.example', 'asked at once')
  t.match(await healthy, { addresses: ['10.0.0.1'] })
  const outcomes = (await Promise.all(answers)).map(answer => ('failed' in answer ? answer.failed : 'found'))
  t.ok(outcomes.filter(outcome => outcome === 'name_busy').length >= 1_100 - 32 - 128, 'a bounded number of them waits')
  t.ok(outcomes.includes('name_timeout'))
  t.match(await resolver.resolve('well2.example', 'hostile'), { addresses: ['10.0.0.1'] })
  const again = resolver.resolve('dead1099.example', 'hostile')
  t.equal(asked.at(-1), 'dead1099.example', 'a name that was refused is looked up again')
  await again
})

t.test('a name that waits behind the dead ones of one agent is looked up at once for another', async t => {
  const { resolver, asked } = openSlow()
  for (const name of deadNames(40)) resolver.resolve(name, 'hostile')
  const behind = resolver.resolve('well.example', 'hostile')
  t.notOk(asked.includes('well.example'))
  t.equal(resolver.resolve('well.example', 'victim'), behind, 'one look-up serves both')
  t.ok(asked.includes('well.example'))
  t.match(await behind, { addresses: ['10.0.0.1'] })
  t.equal(asked.filter(name => name === 'well.example').length, 1)
})
