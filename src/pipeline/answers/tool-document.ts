import type { Sendable } from '../exchange.ts'
import type { ReaderParts } from '../parts.ts'
import { HeldDocument } from './held-document.ts'
import type { AnswerOutput } from './interest.ts'
import { mayHoldList, searchForList } from './list-name.ts'
import type { TextSearch } from './text-search.ts'
import { readToolList } from './tool-list.ts'

export interface DocumentTerms {
  /** A document that can be read is the list. */
  readonly isList: boolean
  /** The client guesses the character set. */
  readonly isGuessed: boolean
}

/** An answer that is one JSON document. A long result of a tool is passed on, unless a list is in it. */
export class ToolDocument extends HeldDocument {
  readonly #terms: DocumentTerms
  #search: TextSearch | undefined

  constructor(exchange: Sendable, terms: DocumentTerms, out: AnswerOutput, parts: ReaderParts) {
    super(exchange, terms.isList, out, parts)
    this.#terms = terms
  }

  protected override mayPass(part: Buffer): boolean {
    this.#search ??= searchForList()
    return !this.#isWide(part) && !this.#search.push(part)
  }

  protected override async read(whole: Buffer): Promise<Buffer | undefined> {
    if (this.#isWide(whole)) return undefined
    if (!this.#terms.isList && !mayHoldList(whole)) return whole
    return (await readToolList(whole, this.exchange, this.parts))?.bytes
  }

  /** Whether it is UTF-16, or UTF-32: clients in Python find that out by the zeros in it. */
  #isWide(bytes: Buffer): boolean {
    return this.#terms.isGuessed && bytes.includes(0)
  }
}
