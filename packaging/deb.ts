/**
 * `npm run build:deb`: build/agent-gateway_VERSION_ARCH.deb, with a Node.js of its own. It needs dpkg-deb, on Debian or any other
 * system that has it.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { installRoot, maintainer, repository, run, usualPrefix, version } from './root.ts'

/** Packages of Debian have no files in /opt. */
const prefix = '/usr/lib/agent-gateway'
const target = join(repository, 'build/deb')
const source = join(repository, 'packaging/debian')
const architecture = { x64: 'amd64' }[process.arch as string] ?? process.arch
export const debianPackage = join(repository, `build/agent-gateway_${version}_${architecture}.deb`)

const control = (kilobytes: number): string => `Package: agent-gateway
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Depends: libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 11), systemd-standalone-sysusers | systemd-sysusers
Section: net
Priority: optional
Description: authenticating, policy-deciding proxy for autonomous agents
 Agents call the world through this gateway. It identifies each agent by its
 token, decides each request by the policy of the agent and by its risk, and
 forwards it, refuses it, or holds it until a person decides.
 .
 The package has a Node.js of its own. It starts nothing until
 "systemctl enable --now agent-gateway".
`

function write(path: string, text: string | Buffer, mode = 0o644): void {
  mkdirSync(join(target, path, '..'), { recursive: true })
  writeFileSync(join(target, path), text)
  chmodSync(join(target, path), mode)
}

/** The units of the other ways to install, with the place and the user of this one. */
function writeUnits(): void {
  for (const name of ['agent-gateway.service', 'agent-gateway.socket', 'agent@.service']) {
    const text = readFileSync(join(repository, 'deploy', name), 'utf8').replaceAll(usualPrefix, prefix)
    const isGateway = name === 'agent-gateway.service'
    write(`lib/systemd/system/${name}`, isGateway ? text.replace('DynamicUser=yes', 'User=agent-gateway') : text)
  }
  write('usr/lib/sysusers.d/agent-gateway.conf', readFileSync(join(source, 'agent-gateway.sysusers')))
}

function writeDocuments(): void {
  const documents = 'usr/share/doc/agent-gateway'
  // RFC 5322, as the changelog wants it. That of the last commit: the same source gives the same package.
  const date = run(['git', 'log', '-1', '--format=%cD']).trim()
  const entry = `agent-gateway (${version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- ${maintainer}  ${date}\n`
  write(`${documents}/changelog.gz`, gzipSync(entry, { level: 9 }))
  write(`${documents}/CHANGELOG.md.gz`, gzipSync(readFileSync(join(repository, 'CHANGELOG.md')), { level: 9 }))
  write('usr/share/lintian/overrides/agent-gateway', readFileSync(join(source, 'lintian-overrides')))
  write(`${documents}/copyright`, readFileSync(join(source, 'copyright')))
}

/**
 * The command runs with the Node.js of the package, whatever PATH says. `serve` has what the unit sets for the allocator, which programs
 * that `run` starts must not inherit.
 */
export function commandText(): string {
  const allocator =
    readFileSync(join(repository, 'deploy/agent-gateway.service'), 'utf8').match(/\bMALLOC_\w+=\d+/g) ?? []
  const modules = `${prefix}/node_modules`
  const main = `${modules}/node/bin/node --max-semi-space-size=4 ${modules}/agent-gateway/dist/main.js`
  return `#!/bin/sh\n[ "$1" != serve ] || export ${allocator.join(' ')}\nexec ${main} "$@"\n`
}

function writeCommand(): void {
  const modules = `${prefix}/node_modules`
  rmSync(join(target, modules, '.bin'), { recursive: true })
  chmodSync(join(target, modules, 'agent-gateway/dist/main.js'), 0o644)
  write('usr/bin/agent-gateway', commandText(), 0o755)
}

function writeControl(): void {
  const kilobytes = Number.parseInt(run(['du', '-sk', '--apparent-size', target]), 10)
  write('DEBIAN/control', control(kilobytes))
  // dpkg asks before it replaces one of these that was changed.
  const files = run(['find', 'etc', '-type', 'f'], target).trim().split('\n').sort()
  write('DEBIAN/conffiles', `${files.map(file => `/${file}`).join('\n')}\n`)
  for (const name of ['postinst', 'prerm', 'postrm']) write(`DEBIAN/${name}`, readFileSync(join(source, name)), 0o755)
  const sums = run(['sh', '-c', 'find usr lib -type f -print0 | sort -z | xargs -0 md5sum'], target)
  write('DEBIAN/md5sums', sums)
}

export function buildDebianPackage(): void {
  rmSync(target, { recursive: true, force: true })
  installRoot(target, prefix)
  writeUnits()
  writeDocuments()
  // Files are written with the umask of whoever builds: only root writes, everybody reads.
  run(['chmod', '-R', 'u=rwX,go=rX', target])
  writeCommand()
  writeControl()
  run(['dpkg-deb', '--root-owner-group', '--build', target, debianPackage])
}

if (import.meta.main) buildDebianPackage()
