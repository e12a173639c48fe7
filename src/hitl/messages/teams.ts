/** A message for a workflow of Teams: an Adaptive Card. Text runs are plain text, where text blocks would take markdown. */
import { fit, type Notice } from './notice.ts'

const run = (text: string, rest: object = {}) => ({ type: 'TextRun', text: fit(text), ...rest })
const line = (...inlines: readonly object[]) => ({ type: 'RichTextBlock', inlines })

export function teamsMessage({ headline, facts, link }: Notice) {
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    ...{ type: 'AdaptiveCard', version: '1.4' },
    body: [
      line(run(headline, { weight: 'Bolder' })),
      ...facts.map(([name, value]) => line(run(`${name}: `, { isSubtle: true }), run(value))),
    ],
    actions: link === undefined ? [] : [{ type: 'Action.OpenUrl', title: 'Open in the console', url: link }],
  }
  return {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  }
}
