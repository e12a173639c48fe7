/**
 * The values of node:http that the gateway uses. Others import its types alone: an import of a value reads all that the
 * module exports, and its WebSocket loads another HTTP client, for 15 MiB of memory.
 */
export const { createServer, request, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http')
