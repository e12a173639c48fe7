import t from 'tap'
import { runs } from '../../fixtures/runs.ts'
import { longLifeContract } from './server.ts'

longLifeContract(t, { past: runs(1_000_000, 50_000), waiting: 10_000 })
