import { choice, integer } from './setting.ts'

/** Settings under `System` that limit agents, callers of the management API, and trust in upstreams. */
export const limits = {
  RateLimit: {
    RequestsPerMinute: integer(600, 'Steady pace of one agent on /proxy.', { min: 1, max: 10_000_000 }),
    Burst: integer(100, 'Requests of one agent that may arrive at once.', { min: 1, max: 10_000_000 }),
    MaxInFlight: integer(64, 'Requests of one agent under way at once; more get 429.', { min: 1, max: 1_000_000 }),
    Fields: choice(
      ['Refused', 'Low', 'Always'],
      'Low',
      'Answers with RateLimit fields: 429 alone; also those that leave less than a tenth of Burst; all. With Fleet:RateLimits Shared, 429 alone.',
    ),
  },
  ManagementRateLimit: {
    RequestsPerMinute: integer(600, 'Steady pace of one caller of the management API.', { min: 1, max: 10_000_000 }),
    Burst: integer(200, 'Management calls of one caller that may arrive at once.', { min: 1, max: 10_000_000 }),
  },
  CircuitBreaker: {
    Failures: integer(
      5,
      'Failures within a minute that open the circuit of an origin for the agent that saw them; failures to connect open it for all.',
      {
        min: 1,
        max: 10_000,
      },
    ),
    OpenSeconds: integer(30, 'Time for which an open circuit refuses, until one probe may pass.', {
      min: 1,
      max: 86_400,
    }),
  },
} as const
