import { readFileSync } from 'node:fs'
import t from 'tap'
import { consoleTypes, writeTypes } from '../fixtures/console-types.ts'

t.test(
  'the types of the console are those of openapi.json: node test/fixtures/console-types.ts writes them',
  async t => {
    // The formatter breaks lines as it likes.
    const plain = (text: string) => text.replaceAll(/[\s;|]+/g, ' ')
    t.equal(plain(readFileSync(consoleTypes, 'utf8')), plain(writeTypes()))
  },
)
