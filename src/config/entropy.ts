/** Least length and least estimated randomness of a secret that keys are made of. */
const minBytes = 32
const minBits = 128
const advice = 'Make one with: openssl rand -base64 48'

/** Parts of sample and default secrets; long enough that a random secret never holds one. */
const sampleWords = [
  'secret',
  'changeme',
  'change-me',
  'change_me',
  'change-this',
  'password',
  'passphrase',
  'example',
  'sample',
  'placeholder',
  'default',
  'signing',
  'insecure',
  'agent-gateway',
  'agentgateway',
  '01234567',
  '12345678',
  'abcdefgh',
  'qwerty',
]

/** Why a secret must not sign or seal, with advice; undefined when it may. Never contains the secret. */
export function secretProblem(secret: string): string | undefined {
  const weakness = weaknessOf(secret)
  return weakness === undefined ? undefined : `${weakness}. ${advice}`
}

function weaknessOf(secret: string): string | undefined {
  if (new TextEncoder().encode(secret).length < minBytes) return `must be ${minBytes} bytes or more`
  const lower = secret.toLowerCase()
  if (sampleWords.some(word => lower.includes(word))) return 'must not be a sample from documentation'
  if (estimateBits(secret) < minBits) return `must be harder to guess (${minBits} bits or more)`
  return undefined
}

/** Least length and least estimated randomness of a secret that a person may have chosen. */
const minChosenBytes = 16
const minChosenBits = 32

/**
 * Why a client secret is too weak for those who decide or administer, or a key of webhooks; undefined when it is not.
 * Never holds the secret.
 */
export function chosenSecretProblem(secret: string): string | undefined {
  if (new TextEncoder().encode(secret).length < minChosenBytes) return `must be ${minChosenBytes} bytes or more`
  // Well-known words add nothing: guesses begin with them.
  const rest = sampleWords.reduce((text, word) => text.replaceAll(word, ''), secret.toLowerCase())
  return estimateBits(rest) < minChosenBits
    ? 'must be harder to guess. Make one with: openssl rand -base64 24'
    : undefined
}

/** Shannon entropy of the characters, times the length of the shortest part that the text repeats. */
function estimateBits(text: string): number {
  const unit = text.slice(0, shortestPeriod(text))
  const counts = new Map<string, number>()
  for (const char of unit) counts.set(char, (counts.get(char) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= count * Math.log2(count / unit.length)
  return bits
}

/** Knuth-Morris-Pratt: the length of the shortest prefix that, repeated, gives the text. */
function shortestPeriod(text: string): number {
  const border = [0]
  for (let i = 1, k = 0; i < text.length; i++) {
    while (k > 0 && text[i] !== text[k]) k = border[k - 1] ?? 0
    if (text[i] === text[k]) k++
    border.push(k)
  }
  return text.length - (border.at(-1) ?? 0)
}
