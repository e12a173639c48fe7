import t from '../fixtures/tap.ts'
import { postgresContract } from './contract/postgres.ts'

await postgresContract(t)
