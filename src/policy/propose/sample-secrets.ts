import { redactText } from '../../base/redact.ts'
import { isSecretName } from '../../base/secret-names.ts'
import { secretSearch } from '../detectors/detectors.ts'
import { findIn } from '../turns/evaluation.ts'
import { isRecord } from '../values/path.ts'

/** JSON and percent-encoding in a string or a parameter are read to this depth; what goes deeper may be a secret. */
const maxDepth = 4
/** Texts that are searched of one, and those among them that begin like JSON, which takes 10 us where it is none. More may be a secret. */
const maxTexts = 8_192
const maxJson = 256
const jsonStart = /^\s*["[{]/
/** The same in a parameter, where it may be encoded. */
const encodedStart = /^[\s"[{%+]/
/** A member of JSON, also one whose value is an object, and one that a later member of the same name hides. */
const memberName = /"([^"\\]{1,64})"\s{0,8}:/g
/** The same in bodies that are no JSON: arguments of GraphQL, lines of YAML and of plain text, elements of XML. */
const otherNames = [
  /(?<![\w.-])([\w.-]{1,64})\s{0,8}:\s{0,8}["']/g,
  /^[ \t]{0,64}(?:- )?((?:[\w.-]{1,64} ){0,3}[\w.-]{1,64}):[ \t]{1,8}\S/gm,
  /<(?:[\w-]{1,64}:)?([\w.-]{1,64})[\s>]/g,
]
/** Members of an object that names its value: `{"name": "password", "value": "x"}`. */
const namingMember = /^(?:name|field|id|header|param|parameter|property|attribute)$/i
const valueMember = /^(?:val|values?|content|data|text)$/i

/** Whether a secret is, or may be, in a text: JSON, a form, a URL or the value of a header field. */
export function hasSecret(text: string): boolean {
  const texts: string[] = []
  const waiting = [{ text, depth: 0 }]
  let ofJson = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { depth } = next
    texts.push(next.text, unescaped(next.text))
    // A number or a word has no texts in it.
    const isJson = jsonStart.test(next.text)
    if (isJson) ofJson += 1
    const found = isJson ? parseJson(next.text) : undefined
    const inner = found === undefined ? valuesIn(next.text) : stringsOf(found)
    if (inner === undefined || (depth > maxDepth && inner.length > 0)) return true
    if (ofJson > maxJson || texts.length + waiting.length + inner.length > maxTexts) return true
    for (const one of inner) waiting.push({ text: one, depth: depth + 1 })
  }
  return looksSecret([...new Set(texts)].join('\n'))
}

function looksSecret(text: string): boolean {
  if (findIn(secretSearch, text) !== undefined || redactText(text) !== text) return true
  return [memberName, ...otherNames].some(names =>
    [...text.matchAll(names)].some(([, name = '']) => isSecretName(name)),
  )
}

/** What JSON says; undefined for a text that is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** All strings in a value of JSON; undefined when something in it has the name of a secret. */
function stringsOf(root: unknown): readonly string[] | undefined {
  const strings: string[] = []
  const waiting = [root]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value === 'string') strings.push(value)
    if (isRecord(value) && namesSecret(value)) return undefined
    if (typeof value !== 'object' || value === null) continue
    for (const each of Object.values(value)) waiting.push(each)
  }
  return strings
}

const namesSecret = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.keys(value).some(isSecretName) || saysNameOfSecret(value)

/** Whether one member says that another one is a secret. */
export function saysNameOfSecret(value: Readonly<Record<string, unknown>>): boolean {
  const members = Object.entries(value)
  const named = members.some(([name, one]) => namingMember.test(name) && typeof one === 'string' && isSecretName(one))
  return named && members.some(([name]) => valueMember.test(name))
}

/** What stands decoded in a text that is encoded, and the JSON among the values of its parameters; undefined: too much to read. */
function valuesIn(text: string): readonly string[] | undefined {
  const values = text.split(/[?&;#]/).map(pair => pair.slice(pair.indexOf('=') + 1))
  const encoded = values.filter(value => encodedStart.test(value))
  if (encoded.length > maxTexts) return undefined
  const decoded = decode(text)
  const read = encoded
    .map(value => decode(value.replaceAll('+', ' ')))
    .filter(value => value !== text && jsonStart.test(value))
  return decoded === text ? read : [decoded, ...read]
}

/** Once is enough: what is encoded in itself is decoded when it is looked at again. Bytes that are no text stay marks. */
const decode = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, run =>
    run.length === 3 && run < '%8'
      ? String.fromCharCode(Number.parseInt(run.slice(1), 16))
      : Buffer.from(run.replaceAll('%', ''), 'hex').toString(),
  )

const unescaped = (text: string): string =>
  text.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
