export type { RuleTally as ShadowTally } from './rule-tally.ts'
