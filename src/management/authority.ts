/** The authority of the forward proxy: `GET /forward-proxy/ca.pem`, `POST /forward-proxy/ca/rotate`. */
import { isRefusal, refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { Authority } from '../intercept/authority.ts'
import { type NameConstraints, parsePermitted, permittedBy } from '../intercept/name-constraints.ts'
import { by } from './agents.ts'
import { bodyOf, type Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

interface RotationBody {
  readonly permit?: readonly string[]
  readonly keepOld?: boolean
}

const none = refuse('not_found', 'The gateway has no certificate authority: ForwardProxy:Enabled is false.')

export function authorityHandlers({
  authority,
}: Pick<ManagementParts, 'authority'>): Pick<Handlers, 'open' | 'guarded'> {
  return {
    open: {
      getForwardProxyCa() {
        if (authority === undefined) return none
        const headers = ['Content-Type', 'application/x-pem-file']
        return { status: 200, headers, body: authority.current().bundle }
      },
    },
    guarded: {
      async rotateForwardProxyCa(call) {
        if (authority === undefined) return none
        const { keepOld: keepsOld = true, permit } = bodyOf<RotationBody | undefined>(call) ?? {}
        const constraints = permit === undefined ? authority.current().constraints : parsePermitted(permit)
        if (constraints !== undefined && 'wrong' in constraints)
          return refuse('invalid_body', undefined, wrong(constraints))
        const rotated = await authority.rotate({ constraints, keepsOld }, by(call))
        return isRefusal(rotated) ? rotated : jsonReply(200, shown(rotated))
      },
    },
  }
}

const wrong = ({ wrong: text }: { readonly wrong: string }) => ({
  errors: [
    { field: 'permit', message: `must be domains, addresses or address ranges; ${JSON.stringify(text)} is none` },
  ],
})

function shown({ certificate, constraints }: Authority) {
  return {
    fingerprint: certificate.fingerprint256,
    validUntil: certificate.validToDate.toISOString(),
    permitted: permittedOf(constraints),
  }
}

const permittedOf = (constraints: NameConstraints | undefined) =>
  constraints === undefined ? null : permittedBy(constraints)
