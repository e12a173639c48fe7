/** The side of registries that takes packages: of Python, of npm, and of Rust. `/published` tells what has come. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { greeting } from '../modes.ts'
import type { Asked, Server } from '../upstream.ts'
import { fileIn } from './models.ts'

/** @param folder for what is unpacked */
export function createPublishing(folder: string): Server {
  const published = new Map<string, string>()
  return asked => {
    const { rest, res, url, req } = asked
    const json = (value: object) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(value))
    const isPublished = published.has(url)
    const takes = routes[`${req.method} ${rest}`]
    if (takes !== undefined) {
      void buffer(req).then(body => {
        const { archive, answer } = takes(body, asked)
        published.set(url, asked.mode === 'up' ? sumIn(archive, folder) : greeting)
        res.end(answer ?? `${published.get(url)}\n`)
      })
    } else if (rest === '/published') res.end(`${published.get(url)}\n`)
    else if (rest === '/cargo/config.json') json({ dl: `${url}/cargo/crates`, api: `${url}/cargo` })
    else if (rest === '/cargo/he/ll/hello-gateway' && isPublished) {
      const crate = {
        name: 'hello-gateway',
        vers: '1.0.0',
        deps: [],
        cksum: '0'.repeat(64),
        features: {},
        yanked: false,
      }
      res.end(JSON.stringify(crate))
    } else if (/^\/(?:npm|cargo)\//.test(rest)) res.writeHead(404).end('{}')
    else return false
    return true
  }
}

interface Taken {
  readonly archive: Buffer
  /** What was published, if absent. */
  readonly answer?: string
}

const routes: Readonly<Record<string, (body: Buffer, asked: Asked) => Taken>> = {
  'POST /legacy/': (body, { req }) => ({ archive: fileIn(body, req.headers['content-type'] ?? '') }),
  'PUT /npm/hello-gateway': body => {
    const { _attachments } = JSON.parse(String(body)) as { readonly _attachments: Record<string, { data: string }> }
    return { archive: Buffer.from(Object.values(_attachments)[0]?.data ?? '', 'base64'), answer: '{}' }
  },
  // Two parts, each behind its length: a description and the crate.
  'PUT /cargo/api/v1/crates/new': body => ({ archive: body.subarray(8 + body.readUInt32LE(0)), answer: '{}' }),
}

/** Size and hash of the large file in an archive. */
function sumIn(archive: Buffer, folder: string): string {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const path = `${folder}.archive`
  writeFileSync(path, archive)
  const isZip = archive.subarray(0, 2).toString() === 'PK'
  if (isZip) execFileSync('/usr/bin/python3', ['-m', 'zipfile', '-e', path, folder])
  else execFileSync('tar', ['-xzf', path, '-C', folder])
  const [large = ''] = globSync('*/large.bin', { cwd: folder })
  const content = readFileSync(join(folder, large))
  return `${content.length} ${createHash('sha256').update(content).digest('hex')}`
}
