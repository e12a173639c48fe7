import t from 'tap'
import { createResolver } from '../../src/upstream/resolve.ts'
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
  t.strictSame(await resolver.resolve('a.example'), { failed: 'notFound' })
  answer = () => Promise.reject(new Error('SERVFAIL'))
  t.strictSame(await resolver.resolve('a.example'), { failed: 'notFound' })
  answer = async () => ['10.0.0.1']
  t.match(await resolver.resolve('a.example'), { addresses: ['10.0.0.1'] })
})

t.test('a silent resolver is given up after its time, and holds up only so many', async t => {
  const asked: string[] = []
  const resolver = createResolver({
    clock: createClock(),
    timeoutMs: 20,
    concurrency: 2,
    lookup: name => {
      asked.push(name)
      return new Promise(() => {})
    },
  })
  const names = ['a', 'b', 'c', 'd'].map(name => `${name}.example`)
  t.strictSame(await Promise.all(names.map(name => resolver.resolve(name))), Array(4).fill({ failed: 'timedOut' }))
  t.strictSame(asked, ['a.example', 'b.example'])
  t.match(resolver.resolve('10.0.0.1'), { addresses: ['10.0.0.1'] }, 'an address needs no resolver')
})

t.test('too many names in line are refused at once', async t => {
  const resolver = createResolver({ clock: createClock(), timeoutMs: 50, lookup: () => new Promise(() => {}) })
  const answers = Array.from({ length: 1_100 }, (_, i) => resolver.resolve(`n${i}.example`))
  t.strictSame(await answers.at(-1), { failed: 'busy' })
  await Promise.all(answers)
})
