import { query } from '../api.ts'

/** What a rule, a test or a grant is made from: a held request, or a recorded shape of an agent. */
type Source = { readonly hitl: string } | { readonly agent: string; readonly shape: string }

/** The page that makes a rule, a test or a grant from one request. */
export const makeHref = (source: Source): string => `#/make${query({ ...source })}`
