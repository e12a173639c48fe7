/** Requests of clients that have the gateway as their proxy: they name upstreams by their own URLs. */
import { type Refusal, refuse } from '../base/refusals.ts'
import type { Addressing, Road } from './addressing.ts'
import type { RequestRoute } from './request-line.ts'

/** The client knows each upstream by its own URL, so links lead where they say. */
class OwnUrls implements Addressing {
  readonly road: Road
  readonly sharesOrigin = false
  readonly standsFor = undefined
  readonly dropsCredentials = false

  constructor(road: Road) {
    this.road = road
  }

  linkTo(url: URL): string {
    return url.href
  }

  hostLinkTo(): undefined {
    return undefined
  }

  cookiePath(): undefined {
    return undefined
  }

  ownLink(): undefined {
    return undefined
  }
}

const forward = new OwnUrls('forward')

/** What clients of a forward proxy send: a URL with its scheme (RFC 9112 section 3.2.2). */
const absoluteForm = /^https?:\/\//i

/** The target of a request to the forward proxy. Its authority counts, not that of Host (RFC 9112 section 3.2.2). */
export function readForwardTarget(url: string): RequestRoute | Refusal {
  if (!absoluteForm.test(url)) return notAbsolute
  return { kind: 'proxy', rawTarget: url, addressing: forward }
}

const notAbsolute = refuse(
  'invalid_target',
  'This is the port of the forward proxy: the request target must be an http or https URL, such as http://example.com/path. Set this address as HTTP_PROXY.',
)
