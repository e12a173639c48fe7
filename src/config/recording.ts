import { choice, integer } from './setting.ts'

/** Settings under `Recording`: what is kept of requests, for rules that are made of them. */
export const recording = {
  Mode: choice(
    ['off', 'shapes', 'samples'],
    'shapes',
    'shapes counts requests by method, host, path with ids as classes, and names of fields, for policy propose; values of header fields and queries are not kept, of fields of bodies only a few short texts and the range of numbers. Bodies are known only where a rule reads them. samples also keeps whole requests, sealed, for policy simulate: it holds JSON and form bodies of known length until they are read. PUT /agents/{agentId}/recording asks for that of one agent for some days.',
  ),
  KeepDays: integer(30, 'Days after which a shape that did not come again is dropped.', { min: 1, max: 365 }),
  MaxBodyBytes: integer(65_536, 'Longest body of which names of fields are read, and that a sample has.', {
    max: 1_048_576,
  }),
  ShapesPerAgent: integer(
    2_000,
    'Shapes of one agent. A quarter of them is for shapes that came less than three times or within one hour: only these make way for new ones.',
    { min: 100, max: 20_000 },
  ),
  MaxShapes: integer(200_000, 'Shapes of all agents together; further ones are not recorded.', {
    min: 1_000,
    max: 2_000_000,
  }),
  SamplesPerAgent: integer(
    200,
    'Samples of one agent, at most 5 of one shape; further ones are not kept. They go after 7 days.',
    { min: 10, max: 2_000 },
  ),
  MaxSampleBytes: integer(268_435_456, 'Bytes of the samples of all agents; further ones are not kept.', {
    min: 1_048_576,
    max: 17_179_869_184,
  }),
} as const
