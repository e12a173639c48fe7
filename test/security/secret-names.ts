/** Threat T35 of SECURITY.md: one list of secret names, in reviews, in reasons of policies and in the log. */

import t from 'tap'
import { redactText } from '../../src/base/redact.ts'
import { isSecretName } from '../../src/base/secret-names.ts'
import { redactHeaders } from '../../src/hitl/suspend.ts'
import { showActual } from '../../src/policy/evaluation/redact.ts'
import { type Field, parseField } from '../../src/policy/language/fields/fields.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const secrets = `
  Authorization Proxy-Authorization X-Authorization Gateway-Authorization Cookie Set-Cookie Set-Cookie2 Cookie2 X-Cookie
  X-Auth X-Auth-Token X-Auth-Key X-Authentication Authentication X-JWT JWT X-Jwt-Assertion Cf-Access-Jwt-Assertion
  CF_Authorization Cf-Access-Client-Secret Cf-Access-Token X-Goog-Iap-Jwt-Assertion X-Goog-Anything
  X-Goog-Iam-Authorization-Token X-Amzn-Oidc-Data X-Amzn-Oidc-Accesstoken X-Amz-Security-Token X-Amz-Signature
  X-Amz-Credential AWSAccessKeyId aws_access_key_id aws_secret_access_key AWS_SESSION_TOKEN awsSecretKey
  X-Amz-Server-Side-Encryption-Customer-Key x-amz-content-key X-Ms-Client-Principal X-Ms-Token-Aad-Access-Token
  X-Ms-Token-Aad-Id-Token X-Ms-Authorization-Auxiliary X-Functions-Key Ocp-Apim-Subscription-Key subscription-key
  aeg-sas-key aeg-sas-token SharedAccessSignature SharedAccessKey AccountKey azure_storage_key AZURE_CLIENT_SECRET
  AzureWebJobsStorageConnectionString connectionString connection_string GOOGLE_API_KEY google_api_key
  GoogleAccessId X-Goog-Signature X-Goog-Credential gcp_private_key private_key privateKey PRIVATE-KEY DPoP X-DPoP
  token Token access_token accessToken AccessToken access-token accesstoken id_token idToken id_token_hint refresh_token
  refreshToken refreshtoken REFRESHTOKEN apitoken apiToken api_token API_TOKEN authtoken auth_token authToken
  sessiontoken session_token csrf_token csrftoken XSRF-TOKEN X-CSRF-Token csrf xsrf bearer_token bearerToken X-Bearer
  subject_token actor_token device_code deviceCode user_code authorization_code auth_code code code_verifier
  client_secret clientSecret clientsecret client_assertion clientAssertion assertion SAMLResponse SAMLRequest SAMLart
  saml_response wresult api_key apikey apiKey APIKEY ApiKey X-Api-Key X_API_KEY x.api.key xApiKey XAPIKey api-key
  Api-Keys api_keys key Key X-Key app_key appkey appKey DD-API-KEY DD-APPLICATION-KEY X-Application-Key secretkey
  secretKey secret_key SECRET_KEY secret Secret X-Secret app_secret consumer_secret webhook_secret secrets signingkey
  signing_key encryption_key encryptionKey master_key masterKey shared_key license_key licenseKey session_key host_key
  password Password passwd passwort passphrase passcode pwd db_pwd X-Db-Password db_pass userPass pass pw user_password
  old_password newPassword password1 password2 passwords X-Password credential credentials creds aws_credentials
  signature Signature X-Signature X-Hub-Signature X-Hub-Signature-256 X-Slack-Signature Stripe-Signature sig sig1 hmac
  X-Hmac X-Request-Signature X-Amz-Sig sas X-Wsse session SESSION sessionid session_id sessionId JSESSIONID PHPSESSID
  ASP.NET_SessionId ASPSESSIONIDQQTACRBB connect.sid sid X-Session X-Session-Id X-Session-Token laravel_session
  _gitlab_session SSESS0123456789 sess X-Sess CFTOKEN CFID remember_me rememberMe iPlanetDirectoryPro X-OpenIDM-Password
  X-Vault-Token X-Consul-Token X-Nomad-Token X-GitLab-Token PRIVATE-TOKEN JOB-TOKEN Deploy-Token X-Shopify-Access-Token
  X-Figma-Token X-N8N-API-KEY X-Honeycomb-Team X-RapidAPI-Key X-Mashape-Key X-Algolia-API-Key X-Parse-REST-API-Key
  X-Parse-Session-Token X-Sentry-Auth X-Plex-Token X-Emby-Token X-Redmine-API-Key X-Tableau-Auth Fastly-Key X-TFE-Token
  X-MBX-APIKEY CB-ACCESS-KEY CB-ACCESS-SIGN CB-ACCESS-PASSPHRASE X-Kong-Admin-Token X-License-Key X-Insert-Key
  X-Ops-Authorization-1 X-Serverless-Authorization X-Pomerium-Jwt-Assertion X-Forwarded-Access-Token
  X-Auth-Request-Access-Token X-Tfa-Otp otp totp X-GitHub-OTP pin cvv cvc2 mnemonic seed_phrase recovery_code backupCode
  verification_code securityCode mfa_code X-OAuth oauth_token oauth_signature oauth_verifier_secret user[password]
  filter[api_key] user.token ｔｏｋｅｎ data[credentials][] keys X-Access-Token X-Refresh-Token X-ID-Token X-User-Token
`

const harmless = `
  Accept Accept-Encoding Accept-Language Content-Type Content-Length Content-Encoding Host Referer User-Agent Origin Via
  Date ETag If-Match If-None-Match Range Cache-Control Connection Expect From Forwarded X-Forwarded-For Prefer Priority
  X-Forwarded-Proto X-Request-Id X-Correlation-Id traceparent tracestate Idempotency-Key X-Idempotency-Key
  Sec-WebSocket-Key Sec-Fetch-Mode X-Requested-With DNT Upgrade Warning Link Location Retry-After Vary author authors
  Author coauthor authority authored monkey donkey turkey keyboard keyword keywords keynote hotkeyed tokenize tokenizer
  tokens max_tokens maxTokens prompt_tokens completion_tokens token_type tokenType token_endpoint token_count
  grant_type response_type client_id client_name redirect_uri scope state audience issuer subject nonce prompt display
  login_hint max_age expires_in expires client_assertion_type subject_token_type requested_token_type password_policy
  passwordless secretary secret_santa_date cookie_consent cookieConsent session_count sessions signatures_count design
  designer assign assigned resign signal signed_at encode encoded codec decode barcode postcode zipcode zip_code
  postal_code country_code countryCode status_code statusCode error_code currency_code language_code promo_codes qrcode
  compass bypass passenger passport_country surpass pass_rate spin spinner opinion pinned shipping sidebar inside side
  sidecar president residual sort_key sortKey partition_key primary_key foreign_key cache_key routing_key public_key
  key_id_count keys_total keyName authorize_url authorized is_authorized authenticated oauth_callback page page_size
  pageSize limit offset cursor q query search filter sort order id ids uuid name first_name email phone address city
  amount currency total price quantity sku product category title description body content message text subject_line
  url uri href path file filename mime type format version lang locale timezone theme color width height x y z lat lon
  from to since until before after start end created_at updated_at active enabled status role roles team owner
  model temperature top_p stop stream messages tools user input output metadata tags labels note notes comment
`

const names = (list: string) => [...new Set(list.trim().split(/\s+/))]

t.test('the tables hold hundreds of names', async t => {
  t.ok(names(secrets).length >= 230, `${names(secrets).length} secret`)
  t.ok(names(harmless).length >= 200, `${names(harmless).length} harmless`)
})

for (const [list, isSecret] of [
  [names(secrets), true],
  [names(harmless), false],
] as const) {
  const word = isSecret ? 'is redacted' : 'is shown'
  t.test(`the value of each ${word}: header fields, parameters, JSON and reasons`, async t => {
    t.strictSame(
      list.filter(name => isSecretName(name) !== isSecret),
      [],
    )
    for (const name of list) {
      const shown = (text: string) => text.includes('canary')
      const encoded = encodeURIComponent(name)
      const field = parseField(`input.body[${JSON.stringify(name)}]`) as Field
      const texts = {
        header: redactHeaders([name, 'canary'], 'Gateway-Token')[name.toLowerCase()] as string,
        query: redactText(`https://a.example/?a=1&${encoded}=canary&b=2`),
        fragment: redactText(`/relative#${encoded}=canary`),
        matrix: redactText(`/x;${encoded}=canary/y`),
        nested: redactText(`/go?to=${encodeURIComponent(`https://a.example/?${encoded}=canary&b=2`)}&c=3`),
        json: redactText(JSON.stringify({ a: 1, [name]: 'canary', b: 2 })),
        cookie: redactText(`a=1; ${encoded}=canary; b=2`),
        reason: String(showActual(field, 'canary')),
        value: String(showActual(parseField('input.body.note') as Field, `/x?${encoded}=canary`)),
      }
      for (const [place, text] of Object.entries(texts)) {
        if (shown(text) === isSecret) t.fail(`${name} as ${place}: ${text}`)
      }
    }
    t.pass(`${list.length} names`)
  })
}

t.test('credentials under harmless names are found by their shape', async t => {
  const jwt = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`
  const redacted: Readonly<Record<string, string>> = {
    'Bearer canary': '[REDACTED]',
    'DPoP canary': '[REDACTED]',
    'Basic Y2FuYXJ5': '[REDACTED]',
    'AWS4-HMAC-SHA256 Credential=canary': '[REDACTED]',
    'see Bearer canary-canary, please': 'see Bearer [REDACTED], please',
    [`id ${jwt} end`]: 'id [REDACTED] end',
    'https://me:canary@a.example/': 'https://[REDACTED]@a.example/',
    'see <https://me:canary@a.example/x>; rel=next': 'see <https://[REDACTED]@a.example/x>; rel=next',
    '/relative/referer?a=1&token=canary#x': '/relative/referer?a=1&token=[REDACTED]#x',
    '/#access_token=canary&state=5': '/#access_token=[REDACTED]&state=5',
    '{"url":"https://a/?token=canary&b=2"}': '{"url":"https://a/?token=[REDACTED]&b=2"}',
    'https://a/?%74oken=canary': 'https://a/?%74oken=[REDACTED]',
    'https://a/?next=%2Fb%3Ftoken%3Dcanary%26c%3D1': 'https://a/?next=%2Fb%3Ftoken%3D[REDACTED]%26c%3D1',
    'https://a/?next=%252Fb%253Ftoken%253Dcanary': 'https://a/?next=%252Fb%253Ftoken%253D[REDACTED]',
  }
  for (const [text, expected] of Object.entries(redacted)) t.equal(redactText(text), expected)
  for (const text of ['basic plan for two', 'token based login', 'https://a.example/x@y', 'a=b', 'a = b', '=', '%3D']) {
    t.equal(redactText(text), text)
  }
})

t.test('redacting takes time in proportion to the length, whatever the text', async t => {
  const pieces = [
    '://',
    '"a":',
    'eyJ',
    'Bearer ',
    'a=',
    '%25',
    '%3D',
    '&',
    '=',
    '@',
    '"',
    '\\',
    'x',
    ' ',
    '{"',
    '-',
    'token=',
  ]
  for (const piece of pieces) {
    for (const tail of ['', '@', '/b=1', '=', '%3D', '"']) {
      const text = piece.repeat(Math.ceil(64_000 / piece.length)) + tail
      const start = process.cpuUsage()
      redactText(text)
      const { user, system } = process.cpuUsage(start)
      if (user + system > 150_000) t.fail(`${JSON.stringify(piece)} and ${JSON.stringify(tail)}: ${user + system} us`)
    }
  }
  t.pass()
})

t.test('no secret of a path parameter or a reason reaches the log', async t => {
  const origin = await startOrigin(t)
  const gateway = await startGateway(t, { config: { System: { RateLimit: { Burst: 10_000 } } } })
  const conditions = [{ field: 'input.url', operator: 'contains', value: 'reason' }]
  const rules = [{ name: 'told', effect: 'Hitl', conditions }]
  const policyName = await gateway.policy({ name: 'telling', default: 'Allow', rules })
  const { token } = await gateway.agent({ policyName })
  const list = [
    'token',
    'jsessionid',
    'sig',
    'code',
    'X-Auth',
    'apitoken',
    'client_assertion',
    'refreshtoken',
    'session',
  ]
  for (const name of list) {
    const answer = await gateway.proxy(token, `${origin.url}/a;${name}=canary/b?x=1`)
    await answer.body?.cancel()
    const held = await gateway.proxy(token, `${origin.url}/reason?${name}=canary`)
    t.equal(held.status, 202)
    await held.body?.cancel()
  }
  const lines = await gateway.exchanges(list.length * 2)
  t.equal(lines.length, list.length * 2)
  t.notMatch(JSON.stringify(gateway.log), /canary/)
  // Two threads write their lines in any order.
  const paths = lines.map(({ path }) => String(path))
  t.ok(
    paths.some(path => path.startsWith('/a;token=[REDACTED]')),
    paths.join(),
  )
  t.notMatch((await gateway.manage('GET', '/hitl')).text, /canary/)
})
