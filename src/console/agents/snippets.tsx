import { useState } from 'preact/hooks'
import { Copy } from '../parts/copy.tsx'

/** The gateway as agents reach it, as far as the page knows: it may have another address for them. */
const gateway = (): string => new URL('..', document.baseURI).href.replace(/\/$/, '')

const snippets: readonly (readonly [name: string, write: (base: string, agent: string) => string])[] = [
  [
    'curl',
    base => `export GATEWAY_KEY='paste the key'
curl "${base}/proxy/https://api.example/v1/items" -H "Gateway-Authorization: Bearer $GATEWAY_KEY"`,
  ],
  [
    'Python',
    base => `import os, requests

session = requests.Session()
session.headers["Gateway-Authorization"] = "Bearer " + os.environ["GATEWAY_KEY"]
answer = session.get("${base}/proxy/https://api.example/v1/items")
print(answer.status_code, answer.headers.get("Gateway-Hitl-Id"), answer.text)`,
  ],
  [
    'TypeScript',
    base => `const answer = await fetch('${base}/proxy/https://api.example/v1/items', {
  headers: { 'Gateway-Authorization': \`Bearer \${process.env.GATEWAY_KEY}\` },
})
console.log(answer.status, answer.headers.get('Gateway-Hitl-Id'), await answer.text())`,
  ],
  [
    'Any program',
    (_, agent) => `# Needs the forward proxy of the gateway, and no key: one is made for the run.
agent-gateway run --agent ${quoted(agent)} -- python agent.py`,
  ],
]

/** For a shell. */
const quoted = (text: string): string => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/** How a program calls as this agent. The key is not in them, so that it is not copied into code. */
export function Snippets({ agent }: { readonly agent: string }) {
  const [name, setName] = useState('curl')
  const text = snippets.find(([one]) => one === name)?.[1](gateway(), agent) ?? ''
  return (
    <div class="stack">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset has a frame and a legend */}
      <div class="views" role="group" aria-label="Language">
        {snippets.map(([one]) => (
          <button key={one} type="button" aria-pressed={one === name} onClick={() => setName(one)}>
            {one}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <pre class="raw" tabIndex={0}>
        {text}
      </pre>
      <p class="actions">
        <Copy text={text} name="Copy the code" />
      </p>
    </div>
  )
}
