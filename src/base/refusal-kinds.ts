/**
 * The one table of refusals: answers the gateway makes itself instead of forwarding (spec.md section 7).
 * A refusal is a value, matched on its code. `title` and `detail` are safe to show to anyone.
 */
interface RefusalKind {
  readonly status: number
  readonly title: string
  readonly detail: string
  /** Usual seconds after which a 429 or 503 may be tried again; undefined for others. */
  readonly retryAfter: number | undefined
}

const kind = (status: number, title: string, detail: string, seconds = 1): RefusalKind => {
  return { status, title, detail, retryAfter: status === 429 || status === 503 ? seconds : undefined }
}

export const refusalKinds = {
  invalid_request: kind(400, 'Invalid request', 'The request line or a header is malformed.'),
  token_misplaced: kind(
    400,
    'Token misplaced',
    'A token of this gateway must only be in its header field. The request was not sent; replace the token.',
  ),
  invalid_target: kind(400, 'Invalid target', 'The path after /proxy/ must be an absolute http or https URL.'),
  invalid_body: kind(400, 'Invalid body', 'The request body must match the schema of this operation.'),
  invalid_parameter: kind(400, 'Invalid parameter', 'A path or query parameter is not valid.'),
  usage_not_asked: kind(400, 'Usage not asked', 'Send stream_options.include_usage: true.'),
  invalid_budget: kind(400, 'Invalid raise', 'The budget cannot be raised so.'),
  invalid_policy: kind(400, 'Invalid policy', 'The policy has errors; nothing was changed.'),
  browser_refused: kind(
    403,
    'Not for browsers',
    'A browser must not load pages, scripts or images of an upstream from the origin of the gateway. Use fetch, or a virtual host.',
  ),
  signature_unsupported: kind(
    400,
    'Signature unsupported',
    'The gateway cannot sign this request of AWS: it is signed with SigV4A, or in chunks of an unknown form.',
  ),
  unauthenticated: kind(
    401,
    'Unauthorized',
    'The token or the code is missing, wrong or no longer valid. Get a new token with POST /tokens.',
  ),
  proxy_authentication_required: kind(
    407,
    'Proxy authentication required',
    'The token for the forward proxy is missing, wrong or no longer valid. Send a token or a key of the agent.',
  ),
  agent_revoked: kind(403, 'Agent revoked', 'This agent has been revoked, which is final. Register a new one.'),
  agent_quarantined: kind(403, 'Agent quarantined', 'This agent is quarantined. An admin can lift the quarantine.'),
  agent_inactive: kind(403, 'Agent inactive', 'This agent is deactivated. An admin can activate it.'),
  policy_denied: kind(403, 'Denied by policy', 'The policy of this agent denies the request.'),
  mcp_post_only: kind(405, 'POST only', 'MCP clients may send messages here, and nothing else.'),
  mcp_mismatch: kind(400, 'MCP header mismatch', 'The MCP header fields of the request must match its body.'),
  policy_error: kind(
    403,
    'Policy could not be evaluated',
    'The policy could not be evaluated, so the request was refused.',
  ),
  egress_denied: kind(
    403,
    'Destination not allowed',
    'The gateway does not connect to this destination. Its log says why.',
  ),
  credential_conflict: kind(
    403,
    'Credential conflict',
    'The gateway sets this header field for this upstream. Leave it out.',
  ),
  credential_needed: kind(
    403,
    'Credential needed',
    'The gateway has no access to this upstream any more. A person must grant it again; a retry does not help.',
  ),
  credential_scope_needed: kind(
    403,
    'Scope needed',
    'The upstream wants a scope that the account does not have. A person must connect it again with the scope.',
  ),
  own_token_needed: kind(
    403,
    'Own token needed',
    'This upstream gets a token that is had for that of the agent. Call with a JWT of the identity provider, not with a key or a token of the gateway.',
  ),
  forbidden: kind(403, 'Forbidden', 'This operation needs a role that the caller does not have.'),
  own_request: kind(403, 'Own request', 'Reviewers must not decide their own requests. Ask another reviewer.'),
  foreign_origin: kind(403, 'Foreign origin', 'The Host or Origin header does not belong to this gateway.'),
  tunnel_needs_review: kind(
    403,
    'Tunnel needs review',
    'The policy wants a person to review this, and a tunnel that the gateway does not open cannot be held.',
  ),
  price_unknown: kind(403, 'Price unknown', 'The model of this call has no price.'),
  call_unmetered: kind(403, 'Call unmetered', 'The cost of this call cannot be limited.'),
  hitl_denied: kind(403, 'Denied by a reviewer', 'A reviewer denied the request.'),
  not_found: kind(404, 'Not found', 'Nothing exists under this path, id or name.'),
  method_not_allowed: kind(405, 'Method not allowed', 'This method is not supported here. See the Allow header.'),
  already_exists: kind(409, 'Already exists', 'This name is in use. Choose another one.'),
  already_decided: kind(409, 'Already decided', 'The request has been decided already.'),
  withdrawn: kind(
    409,
    'Withdrawn',
    'The agent withdrew the request, or its client left, before a verdict. It was not sent.',
  ),
  last_admin: kind(
    409,
    'Last admin',
    'This is the last active admin. Make another agent an admin first: POST /agents, or PUT /agents/{agentId}/roles.',
  ),
  wrong_state: kind(409, 'Wrong state', 'The state of the agent or request does not allow this.'),
  read_only: kind(409, 'Read-only', 'This policy comes from a file. Change the file; the gateway reloads it.'),
  too_many_keys: kind(409, 'Too many keys', 'This agent has as many keys as it may have. Revoke one first.'),
  in_use: kind(409, 'In use', 'Another object still refers to this. Change that one first.'),
  digest_mismatch: kind(409, 'Digest mismatch', 'The stored request is not the one that was shown. It was not sent.'),
  not_as_seen: kind(
    412,
    'Not as seen',
    'If-Match does not name the digest of this request. Read it again before you decide.',
  ),
  body_too_large: kind(413, 'Body too large', 'The request body is larger than allowed here.'),
  unsupported_media_type: kind(415, 'Unsupported media type', 'Send the body as Content-Type: application/json.'),
  expectation_failed: kind(417, 'Expectation failed', 'Only Expect: 100-continue is supported.'),
  misdirected: kind(
    421,
    'Misdirected request',
    'The request names another host than the CONNECT of its tunnel. Open a tunnel for each host.',
  ),
  websocket_not_supported: kind(
    426,
    'WebSocket not supported',
    'The gateway opens no WebSocket to this host. Call the upstream over HTTP.',
  ),
  rate_limited: kind(429, 'Rate limit exceeded', 'Too many requests. Wait as Retry-After says.'),
  budget_exceeded: kind(429, 'Budget used up', 'A budget of this agent is used up.'),
  budget_reserved: kind(429, 'Budget reserved', 'Calls under way have reserved the budget.'),
  agent_busy: kind(
    429,
    'Too many requests at once',
    'This agent has too many requests under way. Wait until one of them ends.',
  ),
  hitl_queue_full: kind(429, 'Review queue full', 'Too many requests are waiting for review. Try again later.', 30),
  hitl_storage_full: kind(
    429,
    'Review storage full',
    'Requests that were held for review take all the storage that they may use. Try again later.',
    30,
  ),
  too_many_logins: kind(
    429,
    'Too many token requests',
    'Too many credentials are being checked. Wait as Retry-After says.',
  ),
  too_many_tunnels: kind(429, 'Too many tunnels', 'This agent has too many tunnels open.'),
  headers_too_large: kind(
    431,
    'Headers too large',
    'The header section is larger than allowed. Send fewer or shorter header fields.',
  ),
  request_timeout: kind(408, 'Request timeout', 'The request did not arrive in time.'),
  internal: kind(500, 'Internal error', 'The gateway failed. The log has the cause.'),
  upstream_failed: kind(
    502,
    'Upstream failed',
    'The upstream could not be reached, or the connection broke. The log of the gateway says why.',
  ),
  tool_list_unreadable: kind(
    502,
    'Tool list unreadable',
    'The gateway cannot read the list of tools of the MCP server, so it cannot remove those that are denied.',
  ),
  answer_not_kept: kind(
    502,
    'Answer not kept',
    'The request was approved and sent; the answer of the upstream is not available.',
  ),
  credential_unavailable: kind(
    503,
    'Credential unavailable',
    'The gateway cannot get the credential of this upstream now, so nothing was sent. Try again later.',
    5,
  ),
  circuit_open: kind(503, 'Circuit open', 'The upstream failed repeatedly. Wait as Retry-After says.'),
  upstream_busy: kind(503, 'Upstream busy', 'Too many requests to this upstream are already waiting. Try again later.'),
  busy: kind(503, 'Gateway busy', 'The gateway is at a limit of its own. Wait as Retry-After says.'),
  review_pending: kind(
    503,
    'Review pending',
    'The request is held for review, and nobody has decided it yet. Try again as Retry-After says.',
    5,
  ),
  store_unavailable: kind(
    503,
    'Storage unavailable',
    'The gateway cannot record this now, so nothing was done. Try again later.',
  ),
  fenced: kind(
    503,
    'Out of date',
    'The gateway cannot reach its database, so it does not know the latest changes. Try again shortly.',
  ),
  draining: kind(503, 'Shutting down', 'The gateway is stopping. Try again shortly.', 5),
  upstream_timeout: kind(504, 'Upstream timeout', 'The upstream did not answer in time.'),
  http_version_not_supported: kind(505, 'HTTP version not supported', 'The gateway serves HTTP/1.0 and HTTP/1.1.'),
  loop_detected: kind(508, 'Loop detected', 'The request has already passed this gateway.'),
} as const satisfies Record<string, RefusalKind>

export type RefusalCode = keyof typeof refusalKinds
