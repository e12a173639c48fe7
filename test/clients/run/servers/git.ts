/** A repository over HTTP, which takes pushes. */
import type { Test } from 'tap'
import { answerByCgi, createRepository } from '../../fixtures/git-server.ts'
import { greeting, isStreamed } from '../modes.ts'
import { type Server, sendInParts } from '../upstream.ts'

export async function createGit(t: Test): Promise<Server> {
  const { root, backend } = await createRepository(t, `${greeting}\n`)
  return asked => {
    const { rest, mode, req, res } = asked
    if (!rest.startsWith('/code.git/')) return false
    const send = isStreamed(mode) && req.method === 'POST' ? (body: Buffer) => sendInParts(asked, body) : undefined
    answerByCgi({ program: backend, root, target: rest, send }, req, res)
    return true
  }
}
