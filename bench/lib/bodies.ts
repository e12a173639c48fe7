const words =
  `the model answers questions about code and data and writes functions tests and comments for services that read
requests from agents const value = await fetch(url, { method: "POST", headers }) return items.filter(item => item.price
> 100) please explain why this loop ends early and how to mend it without a change of the interface def handle(event):
    pass`.split(/ +/)

/** Longest text of one message, characters. */
const longestMessage = 2_000

const base64Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** A request to a model with a picture of so many characters in base64, the same in each run. */
export function pictureJson(characters: number): string {
  const text = new Array<string>(characters)
  for (let at = 0, seed = 1; at < characters; at++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    text[at] = base64Alphabet[(seed >>> 16) & 63] as string
  }
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${text.join('')}` } }
  const content = [{ type: 'text', text: 'please say what this picture shows' }, picture]
  return JSON.stringify({ model: 'gpt-4o-mini', temperature: 0.2, stream: true, messages: [{ role: 'user', content }] })
}

/** A request to a model of at least so many bytes: messages of English and source code, the same in each run. */
export function chatJson(bytes: number): string {
  const messages: { readonly role: string; readonly content: string }[] = []
  let size = 0
  for (let seed = 1; size < bytes; ) {
    const content: string[] = []
    for (let length = 0; length < Math.min(longestMessage, bytes - size); ) {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
      const word = words[(seed >>> 16) % words.length] as string
      content.push(word)
      length += word.length + 1
    }
    const message = { role: messages.length % 2 === 0 ? 'user' : 'assistant', content: content.join(' ') }
    messages.push(message)
    size += JSON.stringify(message).length + 1
  }
  return JSON.stringify({ model: 'gpt-4o-mini', temperature: 0.2, stream: true, messages })
}
