/** Messages for Slack: blocks of plain text, so that nothing in them is markup, a mention or a link. */
import { fit, type Notice } from './notice.ts'

/** The text of notifications is mrkdwn, which has only these three special characters. */
const special: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const mrkdwn = (text: string): string => fit(text, char => special[char] ?? char)
export const plain = (text: string) => ({ type: 'plain_text', text: fit(text), emoji: false })
export const section = (text: string) => ({ type: 'section', text: plain(text) })

/** Fields of one section, at most. */
const maxFields = 10

/** For an incoming webhook. */
export function slackMessage(notice: Notice) {
  const open = notice.link && { type: 'mrkdwn', text: `<${notice.link}|Open in the console>` }
  const { blocks, ...rest } = slackContent(notice)
  return { ...rest, blocks: [...blocks, ...(open ? [{ type: 'section', text: open }] : [])] }
}

/** The same without the link. */
export function slackContent({ headline, facts }: Pick<Notice, 'headline' | 'facts'>) {
  return {
    text: [headline, ...facts.slice(0, 1).map(([, value]) => value)].map(mrkdwn).join('\n'),
    blocks: slackBlocks({ headline, facts }),
    ...{ unfurl_links: false, unfurl_media: false },
  }
}

export function slackBlocks({ headline, facts }: Pick<Notice, 'headline' | 'facts'>): readonly object[] {
  const lines = facts.map(([name, value]) => plain(`${name}: ${value}`))
  const parts = Array.from({ length: Math.ceil(lines.length / maxFields) }, (_, n) => n * maxFields)
  const fields = parts.map(from => ({ type: 'section', fields: lines.slice(from, from + maxFields) }))
  return [section(headline), ...fields]
}
