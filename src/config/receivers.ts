/** What the settings of receivers of messages must be together. */
import { isLoopback } from '../base/address.ts'
import type { Config } from './schema.ts'

export function mailProblem({ Host, From, To, User, Password }: Config['HumanInTheLoop']['Email']): string | false {
  if (Host === undefined) return false
  if (From === undefined || To.length === 0) return 'From and To must be set'
  return (User === undefined) !== (Password === undefined) && 'User and Password belong together'
}

export function slackProblem({ BotToken, ...slack }: Config['HumanInTheLoop']['Slack']): string | false {
  const { AppToken, SigningSecret, Team, Channels, Verdicts, ApiUrl } = slack
  if (BotToken === undefined) return (AppToken ?? SigningSecret ?? Team) !== undefined && 'must be set for a Slack app'
  const ids = Channels.map(({ Id }) => Id)
  if (Team === undefined || ids.length === 0 || ids.includes(undefined))
    return 'Team and the Id of each channel must be set'
  if (new Set(ids).size < ids.length) return 'each channel must be named once'
  if (AppToken !== undefined && SigningSecret !== undefined) return 'AppToken or SigningSecret must be set, not both'
  if (Verdicts !== 'none' && (AppToken ?? SigningSecret) === undefined)
    return 'AppToken or SigningSecret must be set for Verdicts'
  const { protocol, hostname } = new URL(ApiUrl)
  return protocol === 'http:' && !isLoopback(hostname) && 'ApiUrl must be an https URL'
}

export function pushProblem({ HumanInTheLoop: { Push }, System }: Config): string | false {
  if (!Push.Enabled) return false
  if (new Set(Push.Hosts).size < Push.Hosts.length) return 'each host of Push:Hosts must be named once'
  const url = consoleUrlOf(System)
  if (url === undefined) return 'must be set for Web Push: push services are told who sends'
  return !url.startsWith('https:') && !isLoopback(new URL(url).hostname) && 'must be an https URL for Web Push'
}

/** Messages of Slack and mails are there for their link. */
export function linkProblem({ HumanInTheLoop: { Email, Slack }, System }: Config): string | false {
  const isNeeded = (Email.Host ?? Slack.BotToken) !== undefined
  return isNeeded && consoleUrlOf(System) === undefined && 'must be set: messages to reviewers link to the console'
}

function consoleUrlOf({ Server: { Management }, PublicUrl }: Config['System']): string | undefined {
  return Management.Enabled ? Management.PublicUrl : PublicUrl
}

export function serviceProblem({ Format, Key, Url }: Config['HumanInTheLoop']['Webhooks'][number]): string | undefined {
  if (Format === 'pagerDuty' && Key === undefined) return 'Key must be set: the integration key of PagerDuty'
  if (Key !== undefined && Format !== 'pagerDuty' && Format !== 'ntfy') return `Key is not used by the format ${Format}`
  if (Format === 'ntfy' && Url !== undefined && !/^\/[\w-]{1,64}$/.test(new URL(Url).pathname)) {
    return 'Url must end with the topic, as in https://ntfy.sh/my-topic'
  }
  return undefined
}
