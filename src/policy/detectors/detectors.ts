import { didYouMean } from '../../base/nearest.ts'
import { charset, textOf, upperDigits, urlSafe, word } from './bytes.ts'
import { NumberPass } from './numbers.ts'
import { PrivateKeyPass } from './private-key.ts'
import { Readings } from './readings.ts'
import { type Pass, type RankedDetector, Scan } from './scan.ts'
import { isEmail, isPhone, isUrlPassword, SignPass } from './signs.ts'
import { compilePlusSearch } from './start-search.ts'
import { type Token, TokenPass } from './tokens.ts'

/**
 * Finds credentials and personal data in text, for `detects`, the risk score and redaction. Linear time: a few passes
 * over the bytes, each for several detectors; at each place a bounded number of bytes is looked at.
 */
export interface Detector {
  readonly id: string
  readonly group: 'secret' | 'pii'
  /** Absent for detectors that a pass knows by their id. */
  readonly token?: Token
}

function token(id: string, literals: readonly string[], set: Uint8Array, least: number): Detector {
  return { id, group: 'secret', token: { literals, set, least } }
}

const secret = (id: string): Detector => ({ id, group: 'secret' })
const pii = (id: string): Detector => ({ id, group: 'pii' })

const base64 = charset('A-Za-z0-9+/=_-')
const hex = charset('a-f0-9')
const dotted = charset('A-Za-z0-9_.-')

export const detectors: readonly Detector[] = [
  token('aws-access-key', ['AKIA', 'ASIA'], upperDigits, 16),
  token('github-token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'], word, 36),
  token('gitlab-token', ['glpat-', 'gldt-', 'glrt-'], urlSafe, 20),
  token('slack-token', ['xoxb-', 'xoxp-', 'xoxa-', 'xoxr-', 'xoxs-', 'xapp-'], urlSafe, 20),
  token('slack-webhook', ['hooks.slack.com/services/'], base64, 20),
  token('stripe-key', ['sk_live_', 'rk_live_', 'sk_test_', 'whsec_'], word, 20),
  token('anthropic-key', ['sk-ant-'], urlSafe, 32),
  token('openai-key', ['sk-proj-', 'sk-svcacct-'], urlSafe, 32),
  // Older keys are long and have no dash, unlike words.
  token('openai-key', ['sk-'], word, 40),
  token('google-api-key', ['AIza'], urlSafe, 35),
  token('google-oauth-secret', ['GOCSPX-'], urlSafe, 24),
  // Names in connection strings have any letter case.
  token('azure-storage-key', ['AccountKey=', 'accountkey=', 'ACCOUNTKEY=', 'accountKey='], base64, 80),
  token('npm-token', ['npm_'], word, 36),
  token('pypi-token', ['pypi-'], urlSafe, 60),
  token('huggingface-token', ['hf_'], word, 30),
  token('sendgrid-key', ['SG.'], dotted, 60),
  token('digitalocean-token', ['dop_v1_', 'doo_v1_'], hex, 64),
  token('vault-token', ['hvs.', 'hvb.'], urlSafe, 24),
  token('age-secret-key', ['AGE-SECRET-KEY-1'], upperDigits, 50),
  secret('aws-secret-key'),
  secret('private-key'),
  secret('jwt'),
  secret('url-password'),
  pii('card-number'),
  pii('us-ssn'),
  pii('email'),
  pii('iban'),
  pii('phone'),
]

const groups: readonly string[] = ['secret', 'pii']

/** One search for detectors and groups by name; a string is what is wrong with a name. */
export function compileDetectors(names: readonly string[]): DetectorSearch | string {
  const chosen = new Set<Detector>()
  for (const name of names) {
    const found = detectors.filter(detector => detector.id === name || detector.group === name)
    if (found.length === 0) {
      const known = [...groups, ...detectors.map(detector => detector.id)]
      return `unknown detector ${JSON.stringify(name)}${didYouMean(name, known)}`
    }
    for (const detector of found) chosen.add(detector)
  }
  const [name] = names
  // All rules that ask for a group share one search, so that a text is searched once.
  if (names.length === 1 && name === 'secret') return secretSearch
  return names.length === 1 && name === 'pii' ? personalDataSearch : new DetectorSearch(chosen)
}

/** No detector fires on a shorter text: `a@b.cd`. */
const shortestText = 6

/** Looks for some of the detectors, in one text after another. */
export class DetectorSearch {
  readonly #passes: readonly Pass[]

  constructor(chosen: ReadonlySet<Detector>) {
    this.#passes = passesFor(chosen)
  }

  /** A search over one text that can be done in pieces. */
  begin(readings: Readings): Scan {
    return new Scan(this.#passes, readings)
  }

  /** Id of the detector that fires, or undefined. */
  find(text: string): string | undefined {
    if (text.length < shortestText) return undefined
    const scan = this.begin(new Readings(textOf(text)))
    scan.advance({ left: Number.POSITIVE_INFINITY })
    return scan.id
  }
}

// Tokens come before numbers, and both before the others. Within each, the first in the text counts.
const tokenRank = 0
const numberRank = 1
const otherRank = 2
const numbers: readonly string[] = ['card-number', 'us-ssn']

/** The passes that find the chosen detectors, those that find the first of them first. */
function passesFor(chosen: ReadonlySet<Detector>): readonly Pass[] {
  const ranked = new Map<string, RankedDetector>()
  for (const [place, detector] of detectors.entries()) {
    const { id } = detector
    if (chosen.has(detector)) ranked.set(id, { id, rank: numbers.includes(id) ? numberRank : place + otherRank })
  }
  const tokens = [...chosen].flatMap(({ id, token: how }) =>
    how === undefined ? [] : [{ ...how, id, rank: tokenRank }],
  )
  const want = (id: string) => ranked.get(id)
  const wanted = { tokens, awsSecret: want('aws-secret-key'), jwt: want('jwt') }
  const wantedNumbers = { card: want('card-number'), socialSecurity: want('us-ssn'), iban: want('iban') }
  const signs = { urlPassword: want('url-password'), email: want('email'), phone: want('phone') }
  const privateKey = want('private-key')
  const passes: (Pass | undefined)[] = [
    new TokenPass(wanted),
    new NumberPass(wantedNumbers),
    privateKey && new PrivateKeyPass(privateKey),
    signs.urlPassword && new SignPass('@', signs.urlPassword, isUrlPassword),
    signs.email && new SignPass('@', signs.email, isEmail),
    signs.phone && new SignPass('+', signs.phone, isPhone, compilePlusSearch()),
  ]
  return passes.filter((pass): pass is Pass => pass !== undefined && Number.isFinite(pass.best))
}

const searchFor = (group: Detector['group']) =>
  new DetectorSearch(new Set(detectors.filter(one => one.group === group)))

/** The passes that look for everything. */
export const allPasses = passesFor(new Set(detectors))

export const secretSearch = searchFor('secret')
export const personalDataSearch = searchFor('pii')
