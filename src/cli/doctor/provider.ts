/** Whether the identity provider gives its keys, and says what opaque tokens are. */
import { randomUUID } from 'node:crypto'
import { createIntrospection } from '../../tokens/introspection.ts'
import { createKeySet, type DiscoveryOptions, discover } from '../../tokens/keyset.ts'
import { type CheckResult, type DoctorParts, failOf, ok } from './result.ts'

const section = 'Security:AgentAuth:ExternalIdentity'

export async function providerFindings(parts: DoctorParts): Promise<readonly CheckResult[]> {
  const { Provider, Jwt, Introspection } = parts.config.Security.AgentAuth.ExternalIdentity
  if (Provider === undefined || Jwt.Authority === undefined) return []
  const options: DiscoveryOptions = {
    authority: new URL(Jwt.Authority),
    requireHttps: Jwt.RequireHttpsMetadata,
    checkIssuer: Jwt.ValidateIssuer,
    fetchDocument: parts.upstreams.ownRequests.fetch,
  }
  const asked = [keysFinding(options, parts), ...(Introspection.ClientId ? [introspectionFinding(options, parts)] : [])]
  return Promise.all(asked)
}

async function keysFinding(options: DiscoveryOptions, { clock }: DoctorParts): Promise<CheckResult> {
  let problem: unknown
  const onError = (error: unknown) => {
    problem = error
  }
  const keys = await createKeySet({ ...options, clock, onError }).current()
  if (keys !== undefined) return ok(`${options.authority.href} gives its keys; the issuer is ${keys.issuer}`)
  return failOf(
    `${options.authority.href} gives no keys`,
    problem,
    `Open its /.well-known/openid-configuration from here, and compare it with ${section}:Jwt; Proxy:CaFile adds a private authority.`,
    clock.now(),
  )
}

/** Asks about a token that nobody has. */
async function introspectionFinding(options: DiscoveryOptions, parts: DoctorParts): Promise<CheckResult> {
  const { Endpoint, ClientId = '', ClientSecret = '' } = parts.config.Security.AgentAuth.ExternalIdentity.Introspection
  let problem: unknown
  const introspect = createIntrospection({
    clientId: ClientId,
    clientSecret: ClientSecret,
    clock: parts.clock,
    endpoint: async () => (Endpoint === undefined ? (await discover(options)).introspectionUrl : new URL(Endpoint)),
    submitForm: parts.upstreams.ownRequests.submitForm,
    problemOf: () => undefined,
    onError(error) {
      problem = error
    },
  })
  const verified = await introspect(`agent-gateway-doctor-${randomUUID()}`, 'doctor')
  if (verified === 'inactive') return ok('it says what opaque tokens are')
  const why = problem ?? new Error('it calls a token active that nobody has')
  const remedy = `Check ${section}:Introspection and the client there.`
  return failOf('it does not say what opaque tokens are', why, remedy, parts.clock.now())
}
