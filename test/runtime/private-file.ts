import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isPrivate, readPrivateFile } from '../../src/runtime/private-file.ts'
import { testdir } from '../fixtures/testdir.ts'

const folder = testdir(t, {})

t.test('a file is private to its owner, or to a group of the process when it belongs to root', async t => {
  const cases: [mode: number, uid: number, gid: number, isPrivate: boolean][] = [
    [0o100600, 1000, 1000, true],
    [0o100400, 0, 0, true],
    [0o100440, 0, 7, true],
    [0o100640, 0, 7, true],
    [0o100440, 0, 8, false],
    [0o100440, 1000, 7, false],
    [0o100460, 0, 7, false],
    [0o100444, 0, 7, false],
    [0o100441, 0, 7, false],
  ]
  for (const [mode, uid, gid, expected] of cases) {
    t.equal(isPrivate({ mode, uid, gid }, [3, 7]), expected, `${mode.toString(8)} of ${uid}:${gid}`)
  }
})

t.test('a file is read when it is private, and what is not there is nothing', async t => {
  const path = join(folder, 'secret')
  t.equal(await readPrivateFile(path), undefined)
  writeFileSync(path, 'text', { mode: 0o600 })
  t.equal(await readPrivateFile(path), 'text')
  chmodSync(path, 0o604)
  await t.rejects(readPrivateFile(path), { message: `${path}: others can read this secret. Run: chmod 600 ${path}` })
  await t.rejects(readPrivateFile(folder), { message: /others can read|cannot be read/ })
})
