/** The certificate authority of the forward proxy. */
import { X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { StartupError } from '../base/refusals.ts'
import { certificatesIn } from '../intercept/authority.ts'
import { type NameConstraints, parsePermitted } from '../intercept/name-constraints.ts'
import { authorityFile, createStoredAuthority } from '../intercept/stored-authority.ts'
import { systemClock } from '../runtime/clock.ts'
import { answerOf, gatewayHelp, managementToken, refusedIn, whyOf } from './ask-gateway.ts'
import { configHelp, configOption, readConfiguration } from './configuration.ts'
import { atHelp, callJson, findGateway, type GatewayAddress } from './gateway-address.ts'
import { type Command, jsonHelp, jsonOption, printJson, readArgs, UsageError } from './shell.ts'

const addressOption = { at: { type: 'string' } } as const

export const showing: Command = {
  help: `usage: agent-gateway ca show [--pem | --json] [--at ADDRESS] [--config FILE]

Shows the certificates that programs must trust to call through the forward proxy of the running gateway: the one in
use first, then the one before the last rotation.

  --pem          print them as PEM, for a file
${jsonHelp}
${atHelp}
${configHelp}

Example:
  agent-gateway ca show --pem > ca.pem`,
  async run(shell) {
    const { values } = readArgs(shell, {
      ...configOption,
      ...addressOption,
      ...jsonOption,
      pem: { type: 'boolean' },
    })
    if (values.pem && values.json) throw new UsageError('--pem and --json exclude each other')
    const configuration = readConfiguration(shell, values.config)
    const gateway = await findGateway(configuration, values.at)
    const pem = await requestAuthority(gateway)
    if (pem === undefined) {
      throw new StartupError(`${gateway.name} has no certificate authority: ForwardProxy:Enabled is false.`)
    }
    const certificates = certificatesIn(pem).map(text => new X509Certificate(text))
    if (values.json) printJson(shell, certificates.map(shown))
    else if (values.pem) shell.print(pem.trimEnd())
    else for (const line of certificates.flatMap(describe)) shell.print(line)
    return 0
  },
}

/**
 * The certificates to trust, PEM; undefined when the gateway opens no TLS.
 *
 * @throws StartupError when it does not answer
 */
export async function requestAuthority(gateway: GatewayAddress): Promise<string | undefined> {
  const answer = await callJson(gateway, { method: 'GET', path: '/forward-proxy/ca.pem' })
  const { status, text } = answer
  if (status === 404) return undefined
  if (status === 200 && text.startsWith('-----BEGIN CERTIFICATE-----')) return text
  throw new StartupError(`${gateway.name} did not give its certificate authority. ${whyOf(refusedIn(answer))}`)
}

const shown = ({ subject, fingerprint256, validTo }: X509Certificate) => ({
  subject: subject.replaceAll('\n', ', '),
  fingerprint: fingerprint256,
  validUntil: new Date(validTo).toISOString(),
})

function describe(certificate: X509Certificate, index: number): readonly string[] {
  const { subject, fingerprint, validUntil } = shown(certificate)
  const use = index === 0 ? 'in use' : 'trusted as well'
  return [`${subject} (${use})`, `  SHA-256      ${fingerprint}`, `  valid until  ${validUntil}`]
}

const permitHelp = `  --permit HOST  a domain, with all names below it, an address or an address range: it may issue certificates
                 for no others. May be given several times`

export const creating: Command = {
  help: `usage: agent-gateway ca create [--permit HOST]... [--config FILE]

Makes the certificate authority of the forward proxy in Storage:DataDirectory, before the first start. Without this
command the gateway makes one at its first start that may issue certificates for all hosts.

${permitHelp}
${configHelp}

Example:
  agent-gateway ca create --permit example.com --permit 10.0.0.0/8`,
  async run(shell) {
    const { values } = readArgs(shell, { ...configOption, ...permitOption })
    const { config, baseDirectory } = readConfiguration(shell, values.config)
    if (config.ForwardProxy.Ca.CertificateFile !== undefined) {
      throw new StartupError('ForwardProxy:Ca:CertificateFile names the authority: none is made.')
    }
    const dataDirectory = resolve(baseDirectory, config.Storage.DataDirectory)
    const constraints = constraintsOf(values.permit ?? [])
    const { certificate } = await createStoredAuthority(dataDirectory, systemClock.now(), constraints)
    shell.print(`${authorityFile(dataDirectory)}: ${describe(certificate, 0).join('\n')}`)
    return 0
  },
}

const permitOption = { permit: { type: 'string', multiple: true } } as const

function constraintsOf(permit: readonly string[]): NameConstraints | undefined {
  const parsed = parsePermitted(permit)
  if (parsed === undefined || !('wrong' in parsed)) return parsed
  throw new UsageError(`--permit ${parsed.wrong}: must be a domain, an address or an address range`)
}

export const rotating: Command = {
  help: `usage: agent-gateway ca rotate [--permit HOST]... [--permit-all] [--drop-old] [--at ADDRESS] [--config FILE]

Replaces the certificate authority of the running gateway, which signs with the new one at once. Programs must read the
new certificate: those that agent-gateway run starts get it, and others from agent-gateway ca show --pem. The old
certificate stays among those to trust until the next rotation. The audit trail records it.
An authority of ForwardProxy:Ca is replaced in its files; SIGHUP makes the gateway read them.

${gatewayHelp}

${permitHelp}; if absent, those of the old one
  --permit-all   it may issue certificates for all hosts
  --drop-old     programs are no longer to trust the old one: when its key is not secret any more
${atHelp}
${configHelp}

Example:
  agent-gateway ca rotate --drop-old`,
  async run(shell) {
    const all = { 'permit-all': { type: 'boolean' }, 'drop-old': { type: 'boolean' } } as const
    const { values } = readArgs(shell, { ...configOption, ...addressOption, ...permitOption, ...all })
    if (values.permit && values['permit-all']) throw new UsageError('--permit and --permit-all exclude each other')
    const configuration = readConfiguration(shell, values.config)
    const gateway = await findGateway(configuration, values.at)
    const permit = values['permit-all'] ? [] : values.permit
    if (permit !== undefined) constraintsOf(permit)
    const body = { ...(permit && { permit }), keepOld: values['drop-old'] !== true }
    const token = await managementToken(shell, configuration, gateway)
    const call = { method: 'POST', path: '/forward-proxy/ca/rotate', body, token } as const
    const rotated = await answerOf<Rotated>(gateway, call, refused => {
      return `${gateway.name} did not rotate it. ${whyOf(refused)}`
    })
    shell.print(`SHA-256 ${rotated.fingerprint}, valid until ${rotated.validUntil}`)
    return 0
  },
}

interface Rotated {
  readonly fingerprint: string
  readonly validUntil: string
}
