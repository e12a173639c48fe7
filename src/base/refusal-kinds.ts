/**
 * The one table of refusals: answers the gateway makes itself instead of forwarding (spec.md section 7).
 * A refusal is a value, matched on its code. `title` and `detail` are safe to show to anyone.
 */
interface RefusalKind {
  readonly status: number
  readonly title: string
  readonly detail: string
}

export const refusalKinds = {
  invalid_request: { status: 400, title: 'Invalid request', detail: 'The request line or a header is malformed.' },
  token_misplaced: {
    status: 400,
    title: 'Token misplaced',
    detail: 'A token of this gateway must only be in its header field. The request was not sent; replace the token.',
  },
  invalid_target: {
    status: 400,
    title: 'Invalid target',
    detail: 'The path after /proxy/ must be an absolute http or https URL.',
  },
  invalid_body: {
    status: 400,
    title: 'Invalid body',
    detail: 'The request body must match the schema of this operation.',
  },
  invalid_parameter: { status: 400, title: 'Invalid parameter', detail: 'A path or query parameter is not valid.' },
  usage_not_asked: { status: 400, title: 'Usage not asked', detail: 'Send stream_options.include_usage: true.' },
  invalid_budget: { status: 400, title: 'Invalid raise', detail: 'The budget cannot be raised so.' },
  invalid_policy: { status: 400, title: 'Invalid policy', detail: 'The policy has errors; nothing was changed.' },
  browser_refused: {
    status: 403,
    title: 'Not for browsers',
    detail:
      'A browser must not load pages, scripts or images of an upstream from the origin of the gateway. Use fetch, or a virtual host.',
  },
  signature_unsupported: {
    status: 400,
    title: 'Signature unsupported',
    detail: 'The gateway cannot sign this request of AWS: it is signed with SigV4A, or in chunks of an unknown form.',
  },
  unauthenticated: {
    status: 401,
    title: 'Unauthorized',
    detail: 'The token or the code is missing, wrong or no longer valid. Get a new token with POST /tokens.',
  },
  proxy_authentication_required: {
    status: 407,
    title: 'Proxy authentication required',
    detail: 'The token for the forward proxy is missing, wrong or no longer valid. Send a token or a key of the agent.',
  },
  agent_revoked: {
    status: 403,
    title: 'Agent revoked',
    detail: 'This agent has been revoked, which is final. Register a new one.',
  },
  agent_quarantined: {
    status: 403,
    title: 'Agent quarantined',
    detail: 'This agent is quarantined. An admin can lift the quarantine.',
  },
  agent_inactive: {
    status: 403,
    title: 'Agent inactive',
    detail: 'This agent is deactivated. An admin can activate it.',
  },
  policy_denied: { status: 403, title: 'Denied by policy', detail: 'The policy of this agent denies the request.' },
  mcp_post_only: { status: 405, title: 'POST only', detail: 'MCP clients may send messages here, and nothing else.' },
  mcp_mismatch: {
    status: 400,
    title: 'MCP header mismatch',
    detail: 'The MCP header fields of the request must match its body.',
  },
  policy_error: {
    status: 403,
    title: 'Policy could not be evaluated',
    detail: 'The policy could not be evaluated, so the request was refused.',
  },
  egress_denied: {
    status: 403,
    title: 'Destination not allowed',
    detail: 'The gateway does not connect to this destination.',
  },
  credential_conflict: {
    status: 403,
    title: 'Credential conflict',
    detail: 'The gateway sets this header field for this upstream. Leave it out.',
  },
  credential_needed: {
    status: 403,
    title: 'Credential needed',
    detail: 'The gateway has no access to this upstream any more. A person must grant it again; a retry does not help.',
  },
  credential_scope_needed: {
    status: 403,
    title: 'Scope needed',
    detail: 'The upstream wants a scope that the account does not have. A person must connect it again with the scope.',
  },
  own_token_needed: {
    status: 403,
    title: 'Own token needed',
    detail:
      'This upstream gets a token that is had for that of the agent. Call with a JWT of the identity provider, not with a key or a token of the gateway.',
  },
  forbidden: { status: 403, title: 'Forbidden', detail: 'This operation needs a role that the caller does not have.' },
  own_request: {
    status: 403,
    title: 'Own request',
    detail: 'Reviewers must not decide their own requests. Ask another reviewer.',
  },
  foreign_origin: {
    status: 403,
    title: 'Foreign origin',
    detail: 'The Host or Origin header does not belong to this gateway.',
  },
  tunnel_needs_review: {
    status: 403,
    title: 'Tunnel needs review',
    detail: 'The policy wants a person to review this, and a tunnel that the gateway does not open cannot be held.',
  },
  price_unknown: { status: 403, title: 'Price unknown', detail: 'The model of this call has no price.' },
  call_unmetered: { status: 403, title: 'Call unmetered', detail: 'The cost of this call cannot be limited.' },
  hitl_denied: { status: 403, title: 'Denied by a reviewer', detail: 'A reviewer denied the request.' },
  not_found: { status: 404, title: 'Not found', detail: 'Nothing exists under this path, id or name.' },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    detail: 'This method is not supported here. See the Allow header.',
  },
  already_exists: { status: 409, title: 'Already exists', detail: 'This name is in use. Choose another one.' },
  already_decided: { status: 409, title: 'Already decided', detail: 'The request has been decided already.' },
  withdrawn: {
    status: 409,
    title: 'Withdrawn',
    detail: 'The agent withdrew the request, or its client left, before a verdict. It was not sent.',
  },
  last_admin: {
    status: 409,
    title: 'Last admin',
    detail:
      'This is the last active admin. Make another agent an admin first: POST /agents, or PUT /agents/{agentId}/roles.',
  },
  wrong_state: { status: 409, title: 'Wrong state', detail: 'The state of the agent or request does not allow this.' },
  read_only: {
    status: 409,
    title: 'Read-only',
    detail: 'This policy comes from a file. Change the file; the gateway reloads it.',
  },
  too_many_keys: {
    status: 409,
    title: 'Too many keys',
    detail: 'This agent has as many keys as it may have. Revoke one first.',
  },
  in_use: { status: 409, title: 'In use', detail: 'Another object still refers to this. Change that one first.' },
  digest_mismatch: {
    status: 409,
    title: 'Digest mismatch',
    detail: 'The stored request is not the one that was shown. It was not sent.',
  },
  not_as_seen: {
    status: 412,
    title: 'Not as seen',
    detail: 'If-Match does not name the digest of this request. Read it again before you decide.',
  },
  body_too_large: { status: 413, title: 'Body too large', detail: 'The request body is larger than allowed here.' },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    detail: 'Send the body as Content-Type: application/json.',
  },
  expectation_failed: { status: 417, title: 'Expectation failed', detail: 'Only Expect: 100-continue is supported.' },
  misdirected: {
    status: 421,
    title: 'Misdirected request',
    detail: 'The request names another host than the CONNECT of its tunnel. Open a tunnel for each host.',
  },
  websocket_not_supported: {
    status: 426,
    title: 'WebSocket not supported',
    detail: 'The gateway opens no WebSocket to this host. Call the upstream over HTTP.',
  },
  rate_limited: { status: 429, title: 'Rate limit exceeded', detail: 'Too many requests. Wait as Retry-After says.' },
  budget_exceeded: { status: 429, title: 'Budget used up', detail: 'A budget of this agent is used up.' },
  budget_reserved: { status: 429, title: 'Budget reserved', detail: 'Calls under way have reserved the budget.' },
  agent_busy: {
    status: 429,
    title: 'Too many requests at once',
    detail: 'This agent has too many requests under way. Wait until one of them ends.',
  },
  hitl_queue_full: {
    status: 429,
    title: 'Review queue full',
    detail: 'Too many requests are waiting for review. Try again later.',
  },
  hitl_storage_full: {
    status: 429,
    title: 'Review storage full',
    detail: 'Requests that were held for review take all the storage that they may use. Try again later.',
  },
  too_many_logins: {
    status: 429,
    title: 'Too many token requests',
    detail: 'Too many credentials are being checked. Wait as Retry-After says.',
  },
  too_many_tunnels: { status: 429, title: 'Too many tunnels', detail: 'This agent has too many tunnels open.' },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    detail: 'The header section is larger than allowed. Send fewer or shorter header fields.',
  },
  request_timeout: { status: 408, title: 'Request timeout', detail: 'The request did not arrive in time.' },
  internal: { status: 500, title: 'Internal error', detail: 'The gateway failed. The log has the cause.' },
  upstream_failed: {
    status: 502,
    title: 'Upstream failed',
    detail: 'The upstream could not be reached, or the connection broke.',
  },
  tool_list_unreadable: {
    status: 502,
    title: 'Tool list unreadable',
    detail: 'The gateway cannot read the list of tools of the MCP server, so it cannot remove those that are denied.',
  },
  answer_not_kept: {
    status: 502,
    title: 'Answer not kept',
    detail: 'The request was approved and sent; the answer of the upstream is not available.',
  },
  credential_unavailable: {
    status: 503,
    title: 'Credential unavailable',
    detail: 'The gateway cannot get the credential of this upstream now, so nothing was sent. Try again later.',
  },
  circuit_open: {
    status: 503,
    title: 'Circuit open',
    detail: 'The upstream failed repeatedly. Wait as Retry-After says.',
  },
  upstream_busy: {
    status: 503,
    title: 'Upstream busy',
    detail: 'Too many requests to this upstream are already waiting. Try again later.',
  },
  busy: {
    status: 503,
    title: 'Gateway busy',
    detail: 'The gateway is at a limit of its own. Wait as Retry-After says.',
  },
  review_pending: {
    status: 503,
    title: 'Review pending',
    detail: 'The request is held for review, and nobody has decided it yet. Try again as Retry-After says.',
  },
  store_unavailable: {
    status: 503,
    title: 'Storage unavailable',
    detail: 'The gateway cannot record this now, so nothing was done. Try again later.',
  },
  fenced: {
    status: 503,
    title: 'Out of date',
    detail: 'The gateway cannot reach its database, so it does not know the latest changes. Try again shortly.',
  },
  draining: { status: 503, title: 'Shutting down', detail: 'The gateway is stopping. Try again shortly.' },
  upstream_timeout: { status: 504, title: 'Upstream timeout', detail: 'The upstream did not answer in time.' },
  http_version_not_supported: {
    status: 505,
    title: 'HTTP version not supported',
    detail: 'The gateway serves HTTP/1.0 and HTTP/1.1.',
  },
  loop_detected: { status: 508, title: 'Loop detected', detail: 'The request has already passed this gateway.' },
} as const satisfies Record<string, RefusalKind>

export type RefusalCode = keyof typeof refusalKinds
