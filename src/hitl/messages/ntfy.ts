/** A message for a topic of ntfy, published as JSON to the root of its server. */
import { fit, type Notice } from './notice.ts'

/** @param topic the last segment of the configured URL */
export function ntfyMessage({ headline, facts, link }: Notice, topic: string) {
  return {
    topic,
    title: fit(headline),
    message: facts.map(([name, value]) => fit(`${name}: ${value}`)).join('\n') || fit(headline),
    ...(link && { click: link }),
  }
}
