/** A message for an incoming webhook of Slack: blocks of plain text, so that nothing in it is markup, a mention or a link. */
import { fit, type Notice } from './notice.ts'

/** The text of notifications is mrkdwn, which has only these three special characters. */
const special: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const mrkdwn = (text: string): string => fit(text, char => special[char] ?? char)
const plain = (text: string) => ({ type: 'plain_text', text: fit(text), emoji: false })

export function slackMessage({ headline, facts, link }: Notice) {
  const lines = facts.map(([name, value]) => plain(`${name}: ${value}`))
  const open = link && { type: 'mrkdwn', text: `<${link}|Open in the console>` }
  return {
    text: [headline, ...facts.slice(0, 1).map(([, value]) => value)].map(mrkdwn).join('\n'),
    blocks: [
      { type: 'section', text: plain(headline) },
      ...(lines.length > 0 ? [{ type: 'section', fields: lines }] : []),
      ...(open ? [{ type: 'section', text: open }] : []),
    ],
    ...{ unfurl_links: false, unfurl_media: false },
  }
}
