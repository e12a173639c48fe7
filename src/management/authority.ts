/** The authority of the forward proxy: `GET /forward-proxy/ca.pem`, `POST /forward-proxy/ca/rotate`. */
import { refuse, refuseField } from '../base/refusals.ts'
import type { Authority } from '../intercept/authority.ts'
import { type NameConstraints, parsePermitted, permittedBy } from '../intercept/name-constraints.ts'
import { by } from './agents.ts'
import { bodyOf, type Handlers, replyOf } from './call.ts'
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
          return refuseField('permit', `${mustBe}; ${JSON.stringify(constraints.wrong)} is none`)
        return replyOf(await authority.rotate({ constraints, keepsOld }, by(call)), shown)
      },
    },
  }
}

const mustBe = 'must be domains, addresses or address ranges'

function shown({ certificate, constraints }: Authority) {
  return {
    fingerprint: certificate.fingerprint256,
    validUntil: certificate.validToDate.toISOString(),
    permitted: permittedOf(constraints),
  }
}

const permittedOf = (constraints: NameConstraints | undefined) =>
  constraints === undefined ? null : permittedBy(constraints)
