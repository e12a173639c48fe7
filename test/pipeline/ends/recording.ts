/** What is recorded of an agent, and which bodies are held for it. */
import t from 'tap'
import { recordingMode, wantsSample } from '../../../src/pipeline/ends/recording.ts'
import { agent } from '../../storage/contract/samples.ts'

type Mode = 'off' | 'shapes' | 'samples'

const terms = (Mode: Mode, now = 100) => ({
  config: {
    Recording: {
      Mode,
      MaxBodyBytes: 1_000,
      KeepDays: 1,
      ShapesPerAgent: 100,
      MaxShapes: 1_000,
      SamplesPerAgent: 10,
      MaxSampleBytes: 1_000,
    },
  },
  clock: { now: () => now },
})
const of = (mode: Mode) => agent('a1', { recording: { mode, until: 200 } })

t.test('the mode of an agent ends by itself, and none opens what the setting has shut', t => {
  t.equal(recordingMode(agent('a1'), terms('shapes')), 'shapes')
  t.equal(recordingMode(of('samples'), terms('shapes')), 'samples')
  t.equal(recordingMode(of('off'), terms('shapes')), 'off')
  t.equal(recordingMode(of('samples'), terms('shapes', 200)), 'shapes')
  t.equal(recordingMode(of('samples'), terms('off')), 'off')
  t.end()
})

t.test('short bodies of JSON and forms are held, of agents of which samples are made', t => {
  const asks = (type: string, contentLength = 10, mode: Mode = 'samples') => {
    const fields = { contentLength } as Parameters<typeof wantsSample>[0]['fields']
    const rawHeaders = ['Accept', 'application/json', ...(type === '' ? [] : ['Content-Type', type])]
    return wantsSample({ agent: of(mode), fields, rawHeaders }, terms('shapes'))
  }
  for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/vnd.api+json'])
    t.ok(asks(type), type)
  t.ok(asks('application/x-www-form-urlencoded'))
  for (const type of ['', 'text/plain', 'application/jsonp', 'multipart/form-data']) t.notOk(asks(type), type)
  for (const length of [-1, 0, 1_001]) t.notOk(asks('application/json', length), `${length}`)
  t.notOk(asks('application/json', 10, 'shapes'))
  t.end()
})
