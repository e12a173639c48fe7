/** Registries of packages: of Python, of npm, and of Rust. */
import { execFileSync } from 'node:child_process'
import { createHash, hash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { script, wheel } from '../clients.ts'
import { greeting } from '../modes.ts'
import { type Server, sendFile } from '../upstream.ts'
import { createPublishing } from './publishing.ts'

/**
 * Makes the packages: those of the mode `down` have the large file in them.
 *
 * @param folder for the archives
 */
export function createPackages(folder: string, large: string): Server {
  const small = `${folder}-small.bin`
  writeFileSync(small, 'small')
  const answerSmall = createRegistry(`${folder}-small`, small)
  const answerLarge = createRegistry(folder, large)
  const answerPublishing = createPublishing(`${folder}-published`)
  return asked => {
    if (asked.mode === 'down') return answerLarge(asked)
    return (asked.mode !== 'up' && answerSmall(asked)) || answerPublishing(asked)
  }
}

/** @param content of the file `large.bin` in each package */
function createRegistry(folder: string, content: string): Server {
  mkdirSync(folder)
  execFileSync('/usr/bin/python3', [script('wheel.py'), join(folder, wheel), content])
  const manifest = { name: 'hello-gateway', version: '1.0.0', main: 'index.js' }
  const tarball = archive(folder, 'package', content, {
    'package.json': JSON.stringify(manifest),
    'index.js': `console.log('${greeting}')\n`,
  })
  const crate = archive(folder, 'hello-gateway-1.0.0', content, {
    'Cargo.toml': '[package]\nname = "hello-gateway"\nversion = "1.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n',
    'lib.rs': `// ${greeting}\n`,
  })
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  const cksum = hash('sha256', readFileSync(crate))
  return asked => {
    const { rest, res, url } = asked
    const json = (value: object) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(value))
    if (rest === '/simple/hello-gateway/') {
      res.setHeader('Content-Type', 'text/html').end(`<a href="../../files/${wheel}">${wheel}</a>`)
    } else if (rest === `/files/${wheel}`) sendFile(asked, join(folder, wheel))
    else if (rest === '/npm/hello-gateway') {
      const dist = { tarball: `${url}/npm/hello-gateway.tgz`, integrity }
      json({ name: manifest.name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { ...manifest, dist } } })
    } else if (rest === '/npm/hello-gateway.tgz') sendFile(asked, tarball)
    else if (rest === '/cargo/config.json') json({ dl: `${url}/cargo/crates/{crate}` })
    else if (rest === '/cargo/he/ll/hello-gateway') {
      json({ name: 'hello-gateway', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false })
    } else if (rest === '/cargo/crates/hello-gateway') sendFile(asked, crate)
    else if (/^\/(?:npm|cargo|simple)\//.test(rest)) res.writeHead(404).end('{}')
    else return false
    return true
  }
}

/** An archive of a folder with files and `large.bin`; gives its path. */
function archive(folder: string, name: string, content: string, files: Readonly<Record<string, string>>): string {
  const inside = join(folder, name)
  mkdirSync(inside)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(inside, file), text)
  const path = `${inside}.tgz`
  execFileSync('cp', [content, join(inside, 'large.bin')])
  execFileSync('tar', ['-I', 'gzip -1', '-cf', path, '-C', folder, name])
  return path
}
