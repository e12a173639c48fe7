/**
 * Which names stand for secrets: of header fields, query and form parameters, cookies and members of JSON. The one list for
 * texts that are shown to reviewers, given as a reason, and logged.
 */
import { memoized } from './memo.ts'

/** Names that are secrets as a whole, without their hyphens. */
const wholeNames = new Set(
  [
    // OAuth, OpenID Connect, SAML and WS-Federation.
    ...['code', 'saml-response', 'saml-request', 'saml-art', 'w-result'],
    // Fields that identity-aware proxies and clouds add.
    ...['x-amzn-oidc-data', 'x-ms-client-principal', 'x-honeycomb-team', 'google-access-id'],
    ...['x-ms-authorization-auxiliary'],
    // Cookies.
    ...['i-planet-directory-pro', 'remember-me', 'cfid'],
  ].map(name => name.replaceAll('-', '')),
)

/** Last words of secret names: `X-Auth` and `db_pass`, but not `author` or `bypass`. */
const lastWords = new Set([
  ...['key', 'sig', 'hmac', 'auth', 'authentication', 'oauth', 'bearer', 'wsse', 'sas', 'jwt', 'jws', 'jwe'],
  ...['pass', 'pw', 'pwd', 'pin', 'otp', 'totp', 'cvv', 'cvc', 'creds', 'sid', 'session', 'sess', 'mnemonic'],
  ...['secrets', 'cookies', 'keys', 'passwords', 'csrf', 'xsrf'],
])

/** Names that end like the name of a secret but are not one: `sort_key` names a column. */
const harmless = new Set([
  ...['idempotency-key', 'x-idempotency-key', 'sec-web-socket-key', 'cache-key', 'surrogate-key', 'sort-key'],
  ...['partition-key', 'primary-key', 'foreign-key', 'routing-key', 'public-key', 'object-key', 'group-key'],
  ...['foreign-keys', 'primary-keys', 'group-keys', 'public-keys'],
])

/** Endings of secret names without their hyphens, for `apitoken`, `refresh_token` and `X-Api-Token` alike. */
const endings = [
  ...['token', 'secret', 'password', 'passwd', 'passwort', 'passphrase', 'passcode', 'credential', 'credentials'],
  ...[
    'authorization',
    'cookie',
    'cookie2',
    'signature',
    'jwt',
    'dpop',
    'assertion',
    'sessionid',
    'sessid',
    'sessionkey',
  ],
  ...['apikey', 'apikeys', 'appkey', 'secretkey', 'privatekey', 'accesskey', 'authkey', 'signingkey', 'encryptionkey'],
  ...['masterkey', 'sharedkey', 'accountkey', 'storagekey', 'licensekey', 'subscriptionkey', 'hostkey', 'functionkey'],
  ...['accesskeyid', 'seedphrase', 'recoverycode', 'backupcode', 'authcode', 'authorizationcode', 'devicecode'],
  ...['usercode', 'verificationcode', 'securitycode', 'mfacode', 'otpcode', 'codeverifier', 'connectionstring'],
  ...['idtokenhint', 'tokenhint', 'authheader', 'authdata', 'accesssign'],
]

/** Families of secret names: fields that Google's proxies add, and session cookies with a suffix. */
const beginnings = ['x-goog-', 'aspsessionid', 'ssess']

/** Longest name that is looked at; longer text is not a name. */
const longest = 256

/** Lower case, words joined by hyphens: `X_Api_Key`, `xApiKey`, `x.api.key` and `XAPIKey` are one name. */
function normalise(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])/g, '$1$3-$2$4')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .toLowerCase()
    .replace(/^-|(?:-?v?[0-9]{1,3})?-?$/g, '')
}

export const isSecretName = (name: string): boolean => name !== '' && name.length <= longest && judged(name)

/** Names repeat; their number is bounded, since others choose them. */
const judged = memoized(2_048, (name: string) => judge(normalise(name)))

function judge(normal: string): boolean {
  if (harmless.has(normal)) return false
  if (lastWords.has(normal.slice(normal.lastIndexOf('-') + 1))) return true
  if (beginnings.some(start => normal.startsWith(start))) return true
  const joined = normal.replaceAll('-', '')
  return wholeNames.has(joined) || endings.some(end => joined.endsWith(end))
}
