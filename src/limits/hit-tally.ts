export type { RuleTally as HitTally } from './rule-tally.ts'
