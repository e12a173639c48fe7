/**
 * The values of node:http that the gateway uses. Other files import only its types: importing a value reads all exports of
 * the module, and its WebSocket loads another HTTP client, which takes 15 MiB of memory.
 */
export const { createServer, request, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http')
