import t from 'tap'
import { openTap } from '../../../src/pipeline/answers/readers.ts'

t.test('each interest that watches an answer sees all of it', async t => {
  const seen: string[] = []
  const watching = (name: string) => ({
    wantsPlainBytes: true,
    watch: () => ({ see: (chunk: Buffer) => void seen.push(`${name} ${chunk}`) }),
  })
  const idle = { wantsPlainBytes: true, watch: () => undefined }
  const head = { status: 200, reason: 'OK', fields: [], contentLength: undefined }
  openTap([idle, watching('a'), { wantsPlainBytes: true }, watching('b'), idle, watching('c')], head)?.see(
    Buffer.from('x'),
  )
  t.strictSame(seen, ['a x', 'b x', 'c x'])
  t.equal(openTap([idle], head), undefined)
})
