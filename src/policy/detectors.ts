import { cards, createNumberSearch, type NumberKind, socialSecurity } from './detect-number.ts'
import { findEmail, findIban, findPhone, findUrlPassword } from './detect-text.ts'
import { base64, createTokenSearch, dotted, hex, runLength, upperDigits, urlSafe, word } from './detect-token.ts'
import { didYouMean } from './problems.ts'

/**
 * Finds credentials and personal data in text, for `detects` and for the risk score. Linear time: one pass for all
 * tokens, one for all numbers, and for the rest a jump from one literal to the next; at each place a bounded number of
 * characters is looked at.
 */
export interface Detector {
  readonly id: string
  readonly group: 'secret' | 'pii'
  readonly how:
    | { readonly kind: 'token'; readonly literals: readonly string[]; readonly set: Uint8Array; readonly least: number }
    | { readonly kind: 'number'; readonly number: NumberKind }
    | { readonly kind: 'search'; readonly find: (text: string) => boolean }
}

/** Gives the id of a detector that fires, or undefined. */
export type Detect = (text: string) => string | undefined

/** A token: one of the literals at the beginning of a word, then `least` or more characters of the set. */
function token(id: string, literals: readonly string[], set: Uint8Array, least: number): Detector {
  return { id, group: 'secret', how: { kind: 'token', literals, set, least } }
}

function secret(id: string, find: (text: string) => boolean): Detector {
  return { id, group: 'secret', how: { kind: 'search', find } }
}

function pii(id: string, find: (text: string) => boolean): Detector {
  return { id, group: 'pii', how: { kind: 'search', find } }
}

function personalNumber(number: NumberKind): Detector {
  return { id: number.id, group: 'pii', how: { kind: 'number', number } }
}

const keyHeader = '-----BEGIN '
const keyTitle = /^(?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----/

function hasPrivateKey(text: string): boolean {
  for (let at = text.indexOf(keyHeader); at >= 0; at = text.indexOf(keyHeader, at + 1)) {
    const title = at + keyHeader.length
    if (keyTitle.test(text.slice(title, title + 64))) return true
  }
  return false
}

/** Header and payload of a JWT both begin with `{"`. */
function hasJwt(text: string): boolean {
  for (let at = text.indexOf('eyJ'); at >= 0; at = text.indexOf('eyJ', at + 3)) {
    const header = runLength(text, at, urlSafe, 2_048)
    const dot = at + header
    if (header >= 16 && text.startsWith('.eyJ', dot) && runLength(text, dot + 1, dotted, 24) >= 24) return true
    at = dot - 3
  }
  return false
}

/** 40 characters of base64 near a name that says what they are. */
function hasAwsSecret(text: string): boolean {
  return ['aws_secret_access_key', 'secretAccessKey', 'SecretAccessKey'].some(name => {
    for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length)) {
      if (
        /^["'\s:=]{1,8}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/.test(text.slice(at + name.length, at + name.length + 60))
      ) {
        return true
      }
    }
    return false
  })
}

export const detectors: readonly Detector[] = [
  token('aws-access-key', ['AKIA', 'ASIA'], upperDigits, 16),
  secret('aws-secret-key', hasAwsSecret),
  token('github-token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'], word, 36),
  token('gitlab-token', ['glpat-', 'gldt-', 'glrt-'], urlSafe, 20),
  token('slack-token', ['xoxb-', 'xoxp-', 'xoxa-', 'xoxr-', 'xoxs-', 'xapp-'], urlSafe, 20),
  token('slack-webhook', ['hooks.slack.com/services/'], base64, 20),
  token('stripe-key', ['sk_live_', 'rk_live_', 'sk_test_', 'whsec_'], word, 20),
  token('anthropic-key', ['sk-ant-'], urlSafe, 32),
  token('openai-key', ['sk-proj-', 'sk-svcacct-'], urlSafe, 32),
  // Older keys are long and have no dash, which tells them from words.
  token('openai-key', ['sk-'], word, 40),
  token('google-api-key', ['AIza'], urlSafe, 35),
  token('google-oauth-secret', ['GOCSPX-'], urlSafe, 24),
  token('azure-storage-key', ['AccountKey='], base64, 80),
  token('npm-token', ['npm_'], word, 36),
  token('pypi-token', ['pypi-'], urlSafe, 60),
  token('huggingface-token', ['hf_'], word, 30),
  token('sendgrid-key', ['SG.'], dotted, 60),
  token('digitalocean-token', ['dop_v1_', 'doo_v1_'], hex, 64),
  token('vault-token', ['hvs.', 'hvb.'], urlSafe, 24),
  token('age-secret-key', ['AGE-SECRET-KEY-1'], upperDigits, 50),
  secret('private-key', hasPrivateKey),
  secret('jwt', hasJwt),
  secret('url-password', findUrlPassword),
  ...cards.map(personalNumber),
  pii('email', findEmail),
  pii('iban', findIban),
  personalNumber(socialSecurity),
  pii('phone', findPhone),
]

const groups: readonly string[] = ['secret', 'pii']

/** One search for detectors and groups by name; a string is what is wrong with a name. */
export function compileDetectors(names: readonly string[]): Detect | string {
  const chosen = new Set<Detector>()
  for (const name of names) {
    const found = detectors.filter(detector => detector.id === name || detector.group === name)
    if (found.length === 0) {
      const known = [...groups, ...detectors.map(detector => detector.id)]
      return `unknown detector ${JSON.stringify(name)}${didYouMean(name, known)}`
    }
    for (const detector of found) chosen.add(detector)
  }
  return combine([...chosen])
}

/** Detectors of one kind share a pass over the text. */
function combine(chosen: readonly Detector[]): Detect {
  const tokens = chosen.flatMap(({ id, how }) => (how.kind === 'token' ? [{ ...how, id }] : []))
  const numbers = chosen.flatMap(({ how }) => (how.kind === 'number' ? [how.number] : []))
  const searches = chosen.flatMap(({ id, how }) => (how.kind === 'search' ? [{ ...how, id }] : []))
  const steps: Detect[] = searches.map(
    ({ id, find }) =>
      text =>
        find(text) ? id : undefined,
  )
  if (numbers.length > 0) steps.unshift(createNumberSearch(numbers))
  if (tokens.length > 0) steps.unshift(createTokenSearch(tokens))
  return text => {
    for (const step of steps) {
      const found = step(text)
      if (found !== undefined) return found
    }
    return undefined
  }
}

const findSecret = compileDetectors(['secret']) as Detect
const findPii = compileDetectors(['pii']) as Detect

/** Id of a detector of group `secret` that fires, or undefined. */
export function detectSecret(text: string): string | undefined {
  return findSecret(text)
}

/** Id of a detector of group `pii` that fires, or undefined. */
export function detectPii(text: string): string | undefined {
  return findPii(text)
}
