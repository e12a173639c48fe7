/** Keys of a role of AWS for the identity of a workload: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html */
import type { CredentialSetting } from '../config/credentials.ts'
import { awsKeys } from './aws.ts'
import { limitOf, type Obtain, secretOf } from './obtain.ts'
import { CredentialError } from './state.ts'

/** The secret is the token of the workload, such as that of a service account of Kubernetes. */
export const assumeRole: Obtain = async (setting, parts, signal) => {
  const { Subject = '' } = setting
  const form = new URLSearchParams({
    ...{ Action: 'AssumeRoleWithWebIdentity', Version: '2011-06-15', RoleSessionName: 'agent-gateway' },
    ...{ RoleArn: Subject, WebIdentityToken: await parts.secrets.read(secretOf(setting)) },
  })
  const headers = ['Content-Type', 'application/x-www-form-urlencoded', 'Accept-Encoding', 'identity']
  const message = { url: serverOf(setting), headers, body: form.toString() }
  const { status, body } = await parts.ownRequests.ask(message, signal, limitOf(setting))
  const text = Buffer.from(body).toString()
  if (status !== 200) {
    const [, code = 'an error'] = /<Code>([A-Za-z.]{1,64})<\/Code>/.exec(text) ?? []
    throw new CredentialError('failing', `The token service of AWS answers ${code} (status ${status}).`)
  }
  return awsKeys(JSON.stringify(credentialsIn(text)), setting, parts.clock.now())
}

const serverOf = ({ TokenUrl, Regions }: CredentialSetting): string =>
  TokenUrl ?? `https://sts.${Regions[0] ?? 'us-east-1'}.amazonaws.com/`

/** Their elements hold letters, digits and signs that XML writes as they are. */
function credentialsIn(text: string): Record<string, string | undefined> {
  const element = (name: string) => new RegExp(`<${name}>([^<>&]+)</${name}>`).exec(text)?.[1]
  return {
    ...{ AccessKeyId: element('AccessKeyId'), SecretAccessKey: element('SecretAccessKey') },
    ...{ SessionToken: element('SessionToken'), Expiration: element('Expiration') },
  }
}
