/** What the program of `run` gets in its environment: never the key. Threat T74. */
import t from 'tap'
import { programEnvironment } from '../../../src/cli/run/variables.ts'

const trust = { extra: '/run/ca.pem', bundle: '/run/bundle.pem', javaStore: '/run/store.p12' }
const place = { port: 1234, password: 'secret', trust }

t.test('the program gets the relay and the authority in variables of every spelling', async t => {
  const env = programEnvironment({ PATH: '/bin' }, place)
  const url = 'http://run:secret@127.0.0.1:1234'
  for (const name of ['HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy']) t.equal(env[name], url, name)
  t.match(env, { PATH: '/bin', NODE_USE_ENV_PROXY: '1', NODE_EXTRA_CA_CERTS: trust.extra, DENO_CERT: trust.extra })
  for (const name of ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'npm_config_cafile'])
    t.equal(env[name], trust.bundle, name)
})

t.test('what was reached without a proxy is not any more', async t => {
  const given = { NO_PROXY: '*', no_proxy: 'example.com', HTTPS_PROXY: 'http://other:1', https_proxy: 'http://other:1' }
  const env = programEnvironment(given, place)
  t.equal(env['NO_PROXY'], 'localhost,127.0.0.1,::1')
  t.equal(env['no_proxy'], env['NO_PROXY'])
  t.equal(env['https_proxy'], env['HTTPS_PROXY'])
})

t.test('Java gets its proxy and its trust store behind the options that it had', async t => {
  const { JAVA_TOOL_OPTIONS } = programEnvironment({ JAVA_TOOL_OPTIONS: '-Xmx1g' }, place)
  t.match(JAVA_TOOL_OPTIONS, /^-Xmx1g -Dhttp\.proxyHost=127\.0\.0\.1 -Dhttp\.proxyPort=1234 -Dhttps\.proxyHost=/)
  t.match(
    JAVA_TOOL_OPTIONS,
    / -Djavax\.net\.ssl\.trustStore=\/run\/store\.p12 -Djavax\.net\.ssl\.trustStoreType=PKCS12$/,
  )
})

t.test('without an authority the program trusts what it did', async t => {
  const env = programEnvironment({ SSL_CERT_FILE: '/mine.pem' }, { ...place, trust: undefined })
  t.equal(env['SSL_CERT_FILE'], '/mine.pem')
  t.equal(env['NODE_EXTRA_CA_CERTS'], undefined)
  t.notMatch(env['JAVA_TOOL_OPTIONS'], 'trustStore')
})

t.test('without a password there is none in the URL', async t => {
  t.equal(programEnvironment({}, { ...place, password: undefined })['HTTPS_PROXY'], 'http://127.0.0.1:1234')
})

t.test('secrets of the gateway do not reach the program', async t => {
  const secrets = {
    AGENT_GATEWAY_KEY: 'agw_1',
    AGENT_GATEWAY_TOKEN: 'token',
    AGENT_GATEWAY_STORAGE_TO: 'postgres://user:password@host/database',
    AGENT_GATEWAY_STORAGE_OWNER: 'postgres://owner:password@host/database',
    SECURITY__BOOTSTRAP__CLIENTSECRET: 'a',
    Security__AgentAuth__TokenIssuance__Secret: 'b',
    STORAGE__POSTGRESQL__CONNECTIONSTRING: 'postgres://user:password@host/database',
  }
  const env = programEnvironment({ ...secrets, SYSTEM__SERVER__HTTP__PORT: '1' }, place)
  for (const name of Object.keys(secrets)) t.equal(env[name], undefined, name)
  t.equal(env['SYSTEM__SERVER__HTTP__PORT'], '1')
})

t.test('credentials that the gateway attaches for its agents do not reach the program', async t => {
  const given = { UPSTREAM_TOKEN: 'of the upstream', UPSTREAM_TOKENS: 'of the program' }
  const env = programEnvironment(given, { ...place, secrets: ['UPSTREAM_TOKEN'] })
  t.equal(env['UPSTREAM_TOKEN'], undefined)
  t.equal(env['UPSTREAM_TOKENS'], 'of the program')
})
