/** A repository over HTTP, which takes pushes. */
import type { Test } from 'tap'
import { answerByCgi, createRepository } from '../../fixtures/git-server.ts'
import { greeting } from '../modes.ts'
import type { Server } from '../upstream.ts'

export async function createGit(t: Test): Promise<Server> {
  const { root, backend } = await createRepository(t, `${greeting}\n`)
  return ({ rest, req, res }) => {
    if (!rest.startsWith('/code.git/')) return false
    answerByCgi({ program: backend, root, target: rest }, req, res)
    return true
  }
}
