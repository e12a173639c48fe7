/** Keys of agents: random text that stands for the agent until it is revoked, for clients with static header fields. */
import { hash } from 'node:crypto'

/** All keys begin with this, so that people and scanners of secrets know one. */
export const keyPrefix = 'agw_'

/** 256 bits in base64url. */
const form = /^agw_[\w-]{43}$/

export const isAgentKey = (text: string): boolean => form.test(text)

/** Nobody can try 2^256 keys: a hash without cost is enough. */
export const hashKey = (key: string): string => hash('sha256', key, 'hex')
