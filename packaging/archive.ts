/** `npm run build:archive`: build/agent-gateway-VERSION-linux-ARCH.tar.xz, which is unpacked in /opt. It needs xz. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repository, rootFolder, run, version } from './root.ts'

export const archive = join(repository, `build/agent-gateway-${version}-linux-${process.arch}.tar.xz`)

export function buildArchive(): void {
  const folder = mkdtempSync(join(tmpdir(), 'agent-gateway-'))
  cpSync(rootFolder, join(folder, 'agent-gateway'), { recursive: true, verbatimSymlinks: true })
  const owned = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name']
  run(['tar', '--create', '--use-compress-program=xz -T0', ...owned, '-f', archive, '-C', folder, 'agent-gateway'])
  rmSync(folder, { recursive: true })
}

if (import.meta.main) buildArchive()
