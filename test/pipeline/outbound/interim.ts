/** Threat T33 of SECURITY.md: what an upstream sends before its answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { parseTarget } from '../../../src/base/target.ts'
import { byUrl } from '../../../src/http/addressing.ts'
import { passInterim } from '../../../src/pipeline/outbound/interim.ts'

/** The links that node is given of an interim answer with these, each in a field. */
function given(...links: readonly string[]): readonly string[] {
  const passed: string[] = []
  const target = parseTarget('https://api.example.com/v1/items')
  // Only these parts of an exchange are used.
  const exchange = {
    target,
    addressing: byUrl.plain,
    fields: { host: 'gateway.test', names: [] },
    tokenNames: [],
    credentials: undefined,
    req: { httpVersion: '1.1' } as IncomingMessage,
    res: { headersSent: false, writeEarlyHints: ({ link }: { link: string[] }) => void passed.push(...link) },
  }
  const head = { status: 103, reason: '', fields: links.flatMap(link => ['Link', link]), contentLength: undefined }
  passInterim(exchange as unknown as Parameters<typeof passInterim>[0] & { res: ServerResponse }, head)
  return passed
}

t.test('links that node can read in linear time are passed on, and no others', async t => {
  const style = '</proxy/https://api.example.com/a.css>; rel=preload; as="style"; nopush'
  t.strictSame(given('</a.css>; rel=preload; as="style"; nopush'), [style])
  for (const odd of [
    `</a>; ${'='.repeat(9_000)}"x y"`,
    `</a>; ${'a='.repeat(4_500)}"x"`,
    '</a>; title="x y"',
    '</a>; =',
  ]) {
    t.strictSame(given(odd, '</b>'), ['</proxy/https://api.example.com/b>'], odd.slice(0, 20))
    t.strictSame(given(odd), [])
  }
})
