import t from 'tap'
import { textOf } from '../../../src/policy/detectors/bytes.ts'
import {
  compileDetectors,
  type DetectorSearch,
  detectors,
  personalDataSearch,
  secretSearch,
} from '../../../src/policy/detectors/detectors.ts'
import { Readings } from '../../../src/policy/detectors/readings.ts'

const detectSecret = (text: string) => secretSearch.find(text)
const detectPii = (text: string) => personalDataSearch.find(text)

const a = (count: number) => 'aB3'.repeat(40).slice(0, count)

/** Samples are put together here, so that no scanner mistakes this file for a leak. */
const secrets: Readonly<Record<string, string>> = {
  'aws-access-key': 'AKIAIOSFODNN7EXAMPLE',
  'aws-secret-key': `aws_secret_access_key = ${a(40)}`,
  'github-token': `ghp_${a(36)}`,
  'gitlab-token': `glpat-${a(20)}`,
  'slack-token': `xoxb-${a(24)}`,
  'slack-webhook': `https://hooks.slack.com/services/T000/B000/${a(24)}`,
  'stripe-key': `sk_live_${a(24)}`,
  'anthropic-key': `sk-ant-${a(40)}`,
  'openai-key': `sk-${a(48)}`,
  'google-api-key': `AIza${a(35)}`,
  'google-oauth-secret': `GOCSPX-${a(24)}`,
  'azure-storage-key': `AccountKey=${a(86)}==`,
  'npm-token': `npm_${a(36)}`,
  'pypi-token': `pypi-${a(80)}`,
  'huggingface-token': `hf_${a(34)}`,
  'sendgrid-key': `SG.${a(22)}.${a(43)}`,
  'digitalocean-token': `dop_v1_${'0a'.repeat(32)}`,
  'vault-token': `hvs.${a(24)}`,
  'age-secret-key': `AGE-SECRET-KEY-1${'QPZ'.repeat(20).slice(0, 58)}`,
  'private-key': '-----BEGIN RSA PRIVATE KEY-----',
  jwt: `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${a(43)}`,
  'url-password': 'postgres://admin:hunter22@db.example/x',
}

const personal: Readonly<Record<string, string>> = {
  'card-number': 'card 4111 1111 1111 1111.',
  email: 'write to jane.doe+x@mail.example.com!',
  iban: 'DE89 3704 0044 0532 0130 00',
  'us-ssn': 'ssn 123-45-6789',
  phone: 'call +49 30 901820',
}

t.test('each kind of secret is found, alone and inside JSON', async t => {
  for (const [id, sample] of Object.entries(secrets)) {
    t.equal(detectSecret(`before ${sample} after`), id, id)
    t.equal(detectSecret(JSON.stringify({ text: sample })), id, `${id} in JSON`)
  }
  t.equal(detectSecret(`sk-proj-${a(40)}`), 'openai-key')
})

t.test('names before a secret may have any letter case, and are whole', async t => {
  for (const name of [
    'AWS_SECRET_ACCESS_KEY',
    'export MINIO_SECRET_ACCESS_KEY',
    'secret-access-key',
    'secretAccessKey',
  ]) {
    for (const text of [`${name}=${a(40)}`, `"${name}": "${a(40)}"`, `x: 1\n${name}='${a(40)}'\ny: 2`]) {
      t.equal(detectSecret(text), 'aws-secret-key', text)
      t.equal(detectSecret(JSON.stringify({ text })), 'aws-secret-key', `${text} in JSON`)
    }
    const pair = JSON.stringify([{ name, value: a(40) }], undefined, 12)
    for (const text of [JSON.stringify({ name, value: a(40) }), pair, `- name: ${name}\n            value: ${a(40)}`]) {
      t.equal(detectSecret(text), 'aws-secret-key', text)
      t.equal(detectSecret(text.replace('value', 'valve')), undefined, `${text}, of another member`)
    }
    const word = name.replace('export ', '')
    const turned = { value: a(40), name: word }
    const lines = JSON.stringify([turned], undefined, 12)
    for (const text of [JSON.stringify(turned), lines, `- value: ${a(40)}\n  name: ${word}`]) {
      t.equal(detectSecret(text), 'aws-secret-key', text)
      t.equal(detectSecret(text.replace('name', 'game')), undefined, `${text}, of another member`)
      t.equal(detectSecret(text.replace(word, `${word}_ID`)), undefined, `${text}, of another name`)
    }
    for (const near of [
      `${name}S=${a(40)}`,
      `${name}${a(40)}`,
      `${name}=${a(39)}`,
      `${name}=${a(41)}`,
      `${name}_ID=${a(40)}`,
    ]) {
      t.equal(detectSecret(near), undefined, near)
    }
  }
  for (const near of ['AWS_ACCESS_KEY', 'SECRET_ACCESS-KEY', 'ECRET_ACCESS_KEY', 'SECRET@ACCESS@KEY']) {
    t.equal(detectSecret(`${near}=${a(40)}`), undefined, near)
  }
  for (const name of ['AccountKey', 'accountKey', 'accountkey', 'ACCOUNTKEY']) {
    t.equal(detectSecret(`AccountName=x;${name}=${a(86)}==`), 'azure-storage-key', name)
    t.equal(detectSecret(`AccountName=x;x${name}=${a(86)}==`), undefined, `x${name}`)
  }
})

t.test('personal data is found', async t => {
  for (const [id, sample] of Object.entries(personal)) t.equal(detectPii(sample), id, id)
})

t.test('every detector has a sample above', async t => {
  const samples = { secret: secrets, pii: personal }
  const without = detectors.filter(({ id, group }) => samples[group][id] === undefined)
  t.strictSame(without, [])
})

t.test('cards are found in the forms they are written in', async t => {
  const cards = [
    '4111111111111111',
    '4111-1111-1111-1111',
    '3782 822463 10005',
    '12 4111 1111 1111 1111 99',
    '2223003122003222',
    '6304000000000000000',
  ]
  for (const text of cards) t.equal(detectPii(text), 'card-number', text)
  const others = [
    '4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1',
    '4111 1111-1111 1111',
    '9111 1111 1111 1111',
    '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18',
  ]
  for (const text of others) t.equal(detectPii(text), undefined, text)
})

t.test('what only looks alike is left alone', async t => {
  const harmless = [
    'AKIA',
    'AKIAIOSFODNN7',
    'xAKIAIOSFODNN7EXAMPLE',
    'ghp_short',
    'https://user@host/',
    'https://host:8080/path@x',
    'eyJ.eyJ.',
    '-----BEGIN PUBLIC KEY-----',
    '-----BEGIN CERTIFICATE-----',
    'risk-assessment-of-the-whole-department-in-detail',
    'AccountKey=abc',
    'aws_secret_access_key is not set',
    'sk-some-very-long-name-of-a-package-with-dashes-in-it',
  ]
  for (const text of harmless) t.equal(detectSecret(text), undefined, text)
  const plain = [
    '4111 1111 1111 1112',
    '0000 0000 0000 0000',
    '1234567890123',
    'x4111111111111111',
    '4111111111111111'.repeat(4),
    'a@b',
    '@example.com',
    'DE88 3704 0044 0532 0130 00',
    '000-12-3456',
    '123-00-6789',
    '+12',
    '2026-01-05T10:00:00+02:00',
  ]
  for (const text of plain) t.equal(detectPii(text), undefined, text)
})

t.test('groups and single detectors are chosen by name, others refused with a hint', async t => {
  const one = compileDetectors(['email']) as DetectorSearch
  t.equal(one.find('jane@mail.example'), 'email')
  t.equal(one.find(secrets['jwt'] as string), undefined)
  t.match(compileDetectors(['emial']), 'did you mean email?')
  for (const { id, group } of detectors) t.equal(typeof compileDetectors([id, group]), 'object', id)
})

t.test('an address is found behind an @ with which the text begins', async t => {
  t.equal(detectPii('@all: write to jane@mail.example'), 'email')
  t.equal(detectPii('@@mail.example'), undefined)
})

t.test('a look at what stands before a value in a pair counts as steps, however much it is', async t => {
  const stepsOf = (name: string) => {
    const text = `${'"'.repeat(64)}${name}="${a(40)}`.repeat(100)
    const budget = { left: 1_000_000 }
    secretSearch.begin(new Readings(textOf(text), 'kept')).advance(budget)
    return 1_000_000 - budget.left
  }
  t.ok(stepsOf('value') - stepsOf('salue') >= 100 * 32)
})
