import t from 'tap'
import { downstreamFields, readFields } from '../../src/http/headers.ts'

t.test('what an upstream names in Connection is not passed on, however it is written', async t => {
  const fields = ['Connection', 'X-A ,\tx-b', 'x-a', '1', 'X-B', '2', 'X-C', '3', 'connection', 'X-c', 'X-D', '4']
  t.strictSame(downstreamFields(fields), ['X-D', '4'])
  t.strictSame(downstreamFields(['Connection', 'Close', 'Close', '1']), ['Close', '1'])
})

t.test('many names in Connection and many fields cost no more than they are long', async t => {
  const many = 100_000
  const fields = Array.from({ length: many }, () => ['b', '']).flat()
  const begin = process.cpuUsage()
  const passed = downstreamFields(['Connection', 'zz,'.repeat(many), ...fields])
  const { user, system } = process.cpuUsage(begin)
  t.equal(passed.length, fields.length)
  t.ok(user + system < 2_000_000, `${user + system} us`)
})

t.test('T85: a traceparent that is repeated is of no trace', async t => {
  const read = (...values: string[]) => readFields(['Host', 'a', ...values.flatMap(v => ['TraceParent', v])], '1.1')
  t.match(
    [read(), read('00-1'), read('00-1', '00-1'), read('1', '2', '3')],
    [{ traceparent: undefined }, { traceparent: '00-1' }, { traceparent: '' }, { traceparent: '' }],
  )
})
