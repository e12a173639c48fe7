/**
 * `npm run build:image`: the image, from packages of Debian and the folder that all packages share, as an archive in build/. It
 * needs buildah and apt-get. Nothing is executed in the image while it is built, so root is not needed for that.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installRoot, repository, run, usualPrefix, version } from './root.ts'

/** What Node.js needs of the system: it brings its own certificates and time zones. */
const packages = ['libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1', 'base-files', 'netbase']
/** Of these packages: not what people read, nor modules for other character sets than UTF-8. */
const needless = [
  ...[
    'boot',
    'home',
    'media',
    'mnt',
    'root',
    'sbin',
    'srv',
    'etc/skel',
    'etc/profile.d',
    'etc/update-motd.d',
    'etc/default',
  ],
  ...[
    'var/local',
    'var/lock',
    'usr/games',
    'usr/include',
    'usr/local',
    'usr/share/lintian',
    'usr/share/gdb',
    'usr/share/doc/*/changelog*',
  ],
  ...['usr/lib/*/gconv', 'usr/lib/*/audit'],
]
const uid = 65_532

const context = join(repository, 'build/image')
const system = join(context, 'system')
export const imageArchive = join(repository, `build/agent-gateway-${version}-image.tar`)

/** The libraries and the names of a Debian, with the records by which scanners find what is inside. */
function writeSystem(): void {
  const folder = mkdtempSync(join(tmpdir(), 'agent-gateway-'))
  // The user of apt writes there.
  chmodSync(folder, 0o777)
  mkdirSync(join(system, 'var/lib/dpkg/status.d'), { recursive: true })
  run(['apt-get', 'download', '-qq', ...packages], folder)
  for (const file of readdirSync(folder)) {
    run(['dpkg-deb', '--extract', join(folder, file), system])
    const control = run(['dpkg-deb', '--field', join(folder, file)])
    writeFileSync(join(system, 'var/lib/dpkg/status.d', file.split('_')[0] ?? ''), control)
  }
  rmSync(folder, { recursive: true })
  run(['sh', '-c', `rm -rf ${needless.join(' ')}`], system)
  writeUsers()
}

function writeUsers(): void {
  mkdirSync(join(system, 'etc'), { recursive: true })
  writeFileSync(
    join(system, 'etc/passwd'),
    `root:x:0:0:root:/:/nowhere\nagent-gateway:x:${uid}:${uid}::/var/lib/agent-gateway:/nowhere\n`,
  )
  writeFileSync(join(system, 'etc/group'), `root:x:0:\nagent-gateway:x:${uid}:\n`)
  writeFileSync(join(system, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n')
}

/** What changes with each version, in a layer of its own. */
function writeGateway(): void {
  const gateway = join(context, 'gateway')
  installRoot(gateway)
  const modules = join(gateway, usualPrefix, 'node_modules')
  const main = join(modules, 'agent-gateway/dist/main.js')
  // There is no `env` that would find Node.js. A young generation of 3 x 4 MiB: a quarter less memory, at the same speed.
  const line = `#!${usualPrefix}/node_modules/node/bin/node --max-semi-space-size=4`
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*/, line))
  // A volume that is mounted there first gets the owner of this folder.
  mkdirSync(join(context, 'data/agent-gateway'), { recursive: true })
  // The pages are for people, and on the web.
  rmSync(join(modules, 'agent-gateway/docs'), { recursive: true })
  cpSync(join(repository, 'LICENSE'), join(gateway, 'usr/share/doc/agent-gateway/copyright'))
}

export function buildImage(): void {
  rmSync(context, { recursive: true, force: true })
  writeSystem()
  writeGateway()
  rmSync(imageArchive, { force: true })
  const name = `agent-gateway:${version}`
  const file = join(repository, 'deploy/image/Dockerfile')
  // An OCI image has no HEALTHCHECK.
  const options = ['--format', 'docker', '--isolation', 'chroot', '--build-arg', `VERSION=${version}`]
  run(['buildah', 'build', ...options, '--tag', name, '--file', file, context])
  run(['buildah', 'push', '--quiet', name, `docker-archive:${imageArchive}:${name}`])
  run(['buildah', 'rmi', name])
}

if (import.meta.main) buildImage()
