import { refuse } from '../errors.ts'
import { expositionType } from '../telemetry/exposition.ts'
import type { Handlers } from './call.ts'
import type { OpenApiDocument } from './openapi.ts'

/** Undefined when metrics are switched off. */
export type MetricsPage = (() => Promise<string>) | undefined

/** `GET /metrics`. */
export function metricsHandlers(page: MetricsPage): Handlers['open'] {
  return {
    async getMetrics() {
      if (page === undefined) return refuse('not_found')
      return { status: 200, headers: ['Content-Type', expositionType], body: await page() }
    },
  }
}

/** The document for a gateway whose metrics need no token (Telemetry:Metrics:Public). */
export function withPublicMetrics(document: OpenApiDocument): OpenApiDocument {
  const { get } = document.paths['/metrics'] ?? {}
  if (get === undefined) return document
  return { ...document, paths: { ...document.paths, '/metrics': { get: { ...get, 'x-roles': [] } } } }
}
