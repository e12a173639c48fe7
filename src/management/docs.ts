import { createReadStream, existsSync } from 'node:fs'
import { openApiText } from '../api/openapi.ts'
import { refuse } from '../base/refusals.ts'
import type { Reply } from '../http/respond.ts'
import type { Handlers } from './call.ts'

/**
 * Folder of the files of swagger-ui-dist. The published package contains copies: as a dependency, swagger-ui-dist would
 * install a package that runs a script.
 */
const distribution = import.meta.url.endsWith('.ts')
  ? new URL('../../node_modules/swagger-ui-dist/', import.meta.url)
  : new URL('../swagger-ui/', import.meta.url)

/** Those that the page needs, with their types; `npm run build` copies the same. Nothing else is served. */
const files: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}

// Paths are relative, so that the page also works below a prefix of a proxy in front.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Agent Gateway API</title>
<link rel="stylesheet" href="open-api/assets/swagger-ui.css">
<link rel="icon" type="image/png" href="open-api/assets/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="open-api/assets/swagger-ui-bundle.js"></script>
<script src="open-api/assets/initializer.js"></script>
</body>
</html>
`

// The validator is a service of others, which must not see the document. The page percent-encodes path parameters, but
// the URL behind /proxy/ is sent as it is.
const initializer = `SwaggerUIBundle({
  url: 'open-api/gateway/specifications.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: 'none',
  requestInterceptor(request) {
    request.url = request.url.replace(/\\/proxy\\/(https?%3A.*)$/i, (_, url) => '/proxy/' + decodeURIComponent(url))
    return request
  },
})
`

/** No inline code, nothing from elsewhere, no frames. The pictures in the style sheet are data URLs. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Operations of spec 4.7. */
export function docsHandlers(): Handlers['open'] {
  return {
    getDocs: () => ({
      status: 200,
      headers: [
        'Content-Type',
        'text/html; charset=utf-8',
        'Content-Security-Policy',
        contentSecurityPolicy,
        'X-Frame-Options',
        'DENY',
        'Referrer-Policy',
        'no-referrer',
      ],
      body: page,
    }),
    getSpecification: () => ({
      status: 200,
      headers: ['Content-Type', 'application/json; charset=utf-8'],
      body: openApiText,
    }),
    getDocsAsset({ named: name }) {
      if (name === 'initializer.js') return asset('text/javascript; charset=utf-8', initializer)
      const type = Object.hasOwn(files, name) ? files[name] : undefined
      const file = new URL(name, distribution)
      return type === undefined || !existsSync(file) ? refuse('not_found') : asset(type, createReadStream(file))
    },
  }
}

/** Public files that change with a release only. */
function asset(type: string, body: NonNullable<Reply['body']>): Reply {
  return { status: 200, headers: ['Content-Type', type, 'Cache-Control', 'public, max-age=3600'], body }
}
