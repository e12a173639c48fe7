import type { Credential } from '../types.ts'
import type { Tone } from './marks.tsx'

export const credentialTones: Readonly<Record<Credential['state'], Tone>> = {
  unused: 'plain',
  ready: 'good',
  renewing: 'plain',
  failing: 'warn',
  needed: 'bad',
}
