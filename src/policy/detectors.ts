import { findCard, findEmail, findIban, findPhone, findSsn, findUrlPassword } from './detect-pii.ts'
import { didYouMean } from './problems.ts'

/**
 * Finds credentials and personal data in text, for `detects` and for the risk score. Linear time: every detector jumps
 * from one literal to the next and looks at a bounded number of characters around it.
 */
export interface Detector {
  readonly id: string
  readonly group: 'secret' | 'pii'
  readonly find: (text: string) => boolean
}

/** Gives the id of the first detector that fires, or undefined. */
export type Detect = (text: string) => string | undefined

/** Characters that may stand in a token. */
const upperDigits = charset('A-Z0-9')
const word = charset('A-Za-z0-9_')
const urlSafe = charset('A-Za-z0-9_-')
const base64 = charset('A-Za-z0-9+/=_-')
const hex = charset('a-f0-9')
const dotted = charset('A-Za-z0-9_.-')

function charset(ranges: string): Uint8Array {
  const allowed = new Uint8Array(128)
  const test = new RegExp(`[${ranges.replace(/-$/, '\\-')}]`)
  for (let code = 0; code < 128; code++) if (test.test(String.fromCharCode(code))) allowed[code] = 1
  return allowed
}

/** A token: one of the literals, then `least` or more characters of the set. */
function token(id: string, literals: readonly string[], set: Uint8Array, least: number): Detector {
  const find = (text: string) => literals.some(literal => hasToken(text, literal, set, least))
  return { id, group: 'secret', find }
}

function hasToken(text: string, literal: string, set: Uint8Array, least: number): boolean {
  for (let at = text.indexOf(literal); at >= 0; at = text.indexOf(literal, at + literal.length)) {
    const alone = at === 0 || !inSet(word, text.charCodeAt(at - 1))
    if (alone && runLength(text, at + literal.length, set, least) >= least) return true
  }
  return false
}

function inSet(set: Uint8Array, code: number): boolean {
  return code < 128 && set[code] === 1
}

/** Characters of the set from `start` on, counted up to `enough`. */
function runLength(text: string, start: number, set: Uint8Array, enough: number): number {
  let length = 0
  while (length < enough && inSet(set, text.charCodeAt(start + length))) length++
  return length
}

function secret(id: string, find: (text: string) => boolean): Detector {
  return { id, group: 'secret', find }
}

function pii(id: string, find: (text: string) => boolean): Detector {
  return { id, group: 'pii', find }
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

/** Newer keys name their kind; older ones are long and have no dash, which tells them from words. */
function hasOpenAiKey(text: string): boolean {
  const named = ['sk-proj-', 'sk-svcacct-'].some(literal => hasToken(text, literal, urlSafe, 32))
  return named || hasToken(text, 'sk-', word, 40)
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
  secret('openai-key', hasOpenAiKey),
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
  pii('card-number', findCard),
  pii('email', findEmail),
  pii('iban', findIban),
  pii('us-ssn', findSsn),
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
  const list = [...chosen]
  return text => list.find(detector => detector.find(text))?.id
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
