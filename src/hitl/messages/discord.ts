/** A message for a webhook of Discord. A block of code has no markdown, mentions or links. */
import { fit, type Notice } from './notice.ts'

/** SUPPRESS_EMBEDS: the link is not unfurled. */
const withoutEmbeds = 4
/** Only this character can end the block. */
const code = (text: string): string => fit(text, char => (char === '`' ? '\\u{60}' : char))

export function discordMessage({ headline, facts, link }: Notice) {
  const lines = [headline, ...facts.map(([name, value]) => `${name}: ${value}`)].map(code)
  return {
    content: ['```', ...lines, '```', ...(link ? [`[Open in the console](<${link}>)`] : [])].join('\n'),
    ...{ allowed_mentions: { parse: [] }, flags: withoutEmbeds },
  }
}
