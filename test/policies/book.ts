import t from 'tap'
import { createBook } from '../../src/policies/book.ts'
import type { PolicyInput, StoredEntry } from '../../src/policies/entry.ts'
import { StoreError } from '../../src/storage/store.ts'
import { createClock } from '../fixtures/clock.ts'
import { loadInto } from '../fixtures/load-policies.ts'
import { openOwn } from '../fixtures/registry.ts'

const by = { actor: 'admin', requestId: 'request-1' }
const store = await openOwn(t)
const options = { store, language: {}, clock: createClock(), usedBy: () => undefined }

function file(name: string, more: object = {}): PolicyInput {
  return { source: 'file', document: { name, ...more }, createdAt: 0, where: path => `${name}.yaml:${path}` }
}

t.test('a set with a mistake changes nothing, and a good one takes its place whole', async t => {
  const book = createBook(options)
  t.strictSame(await loadInto(book, [file('a'), file('b')]), [])
  const before = book.get('a')
  t.match(await loadInto(book, [file('a', { description: 'new' }), file('c', { default: 'Maybe' })]), [
    /^c\.yaml:default: default: .*\(E_EFFECT\)$/,
  ])
  t.equal(book.get('a'), before)
  t.ok(book.get('b'))
  await loadInto(book, [file('c')])
  t.strictSame(
    book.list().map(({ document }) => document.name),
    ['c'],
  )
})

t.test('policies of the API come back after a restart, types of values and all', async t => {
  const first = createBook(options)
  t.teardown(await first.follow())
  const condition = { field: 'input.port', operator: 'eq', value: 8080 }
  const rules = [{ name: 'r', effect: 'allow', conditions: [condition] }]
  const made = await first.create({ name: 'kept', default: 'hitl', rules }, by)
  t.equal(first.entry('kept')?.compiled, 'compiled' in made && made.compiled, 'it is not compiled again')
  const again = createBook(options)
  t.teardown(await again.follow())
  const { compiled, stored, ...entry } = again.entry('kept') as StoredEntry
  t.equal(stored, JSON.stringify(entry.document))
  t.match(made, entry)
  t.match(entry.document, { default: 'Hitl', rules: [{ effect: 'Allow', conditions: [{ value: '8080' }] }] })
  t.strictSame(compiled.policy.rules[0]?.conditions, [
    { ...condition, value: '8080', valueType: 'number', ignoreCase: false, quantifier: 'any' },
  ])
})

t.test('a file hides a policy of the API of the same name, until it goes', async t => {
  const book = createBook(options)
  t.teardown(await book.follow())
  await book.create({ name: 'both', description: 'api' }, by)
  await loadInto(book, [file('both', { description: 'file' })])
  t.match(book.entry('both'), { source: 'file', document: { description: 'file' } })
  t.match(await book.replace('both', {}, by), { refusal: 'read_only' })
  t.match(await book.remove('both', by), { refusal: 'read_only' })
  await loadInto(book, [])
  t.match(book.entry('both'), { source: 'api', document: { description: 'api' } })
})

t.test('a stored policy that cannot be understood any more is left out and named', async t => {
  const own = await openOwn(t)
  const entry = { at: 0, actor: 'x', action: 'policy.create', subject: 'x', requestId: null, details: {} }
  for (const name of ['good', 'odd']) {
    const document = JSON.stringify({ name, ...(name === 'odd' ? { future: true } : {}) })
    await own.policies.insert({ name, document, createdAt: 0, updatedAt: 0 }, entry)
  }
  const lines: string[] = []
  const book = createBook({ ...options, store: own, onUnreadable: more => void lines.push(...more) })
  await book.follow()
  t.match(lines, [/^policy odd of the API: future: .*\(E_UNKNOWN_KEY\)$/])
  t.ok(book.get('good'))
  t.equal(book.get('odd'), undefined)
  const changed = { name: 'good', document: '{"name":"good","future":true}', createdAt: 0, updatedAt: 1 }
  await own.policies.update(changed, entry)
  t.equal(lines.length, 2)
  t.equal(book.get('good'), undefined, 'what replaces it cannot be understood: it denies')
})

t.test('a change is in force when the store resolves, whoever made it, and in every book', async t => {
  const books = [createBook(options), createBook(options)]
  for (const book of books) t.teardown(await book.follow())
  await books[0]?.create({ name: 'shared', description: 'one' }, by)
  t.strictSame(
    books.map(book => book.entry('shared')?.document.description),
    ['one', 'one'],
  )
  await Promise.all([
    books[0]?.replace('shared', { description: 'two' }, by),
    books[1]?.replace('shared', { description: 'three' }, by),
  ])
  const versions = [books[0]!.entry('shared')!.compiled.version]
  const both = await Promise.all(
    books.map((book, at) => book.replace('shared', { description: `${at} saw it` }, { ...by, versions })),
  )
  t.equal(
    both.filter(one => 'refusal' in one && one.refusal === 'not_as_seen').length,
    1,
    'one of two who saw the same',
  )
  const [stored] = (await store.policies.all()).filter(({ name }) => name === 'shared')
  for (const book of books)
    t.equal(book.entry('shared')?.document.description, JSON.parse(stored!.document).description)
  await books[1]?.remove('shared', by)
  t.strictSame(
    books.map(book => book.get('shared')),
    [undefined, undefined],
  )
})

t.test('what cannot be stored is not in force', async t => {
  const fails = () => Promise.reject(new StoreError('disk full'))
  const broken = {
    ...store,
    policies: { all: async () => [], insert: fails, update: fails, remove: fails, apply: fails },
  }
  const book = createBook({ ...options, store: broken })
  await t.rejects(book.create({ name: 'p' }, by), StoreError)
  t.equal(book.get('p'), undefined)
  // The next change is made all the same.
  await t.rejects(book.create({ name: 'q' }, by), StoreError)
})

t.test('the same rules have the same version, other rules another', async t => {
  const book = createBook(options)
  await loadInto(book, [file('a', { rules: [] }), file('b')])
  const version = book.get('a')?.version
  await loadInto(book, [file('a'), file('b')])
  t.equal(book.get('a')?.version, version)
  await loadInto(book, [file('a', { default: 'Allow' })])
  t.not(book.get('a')?.version, version)
})
