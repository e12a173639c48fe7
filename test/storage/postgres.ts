import t from 'tap'
import { postgresContract } from './contract/postgres.ts'

await postgresContract(t)
