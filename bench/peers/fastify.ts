/** fastify with @fastify/http-proxy; it checks nothing. `node fastify.ts UPSTREAM_URL`. */
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'

const server = fastify({ keepAliveTimeout: 600_000 })
await server.register(httpProxy, { upstream: process.argv[2] as string })
const url = await server.listen({ host: '127.0.0.1', port: 0 })
console.log(`listening on ${new URL(url).port}`)
// Ends as a program should, so that a profile is written.
process.once('SIGTERM', () => process.exit())
