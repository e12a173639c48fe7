/** Hosts that a person should look at are found in little memory, however many and long they are. Threat T90. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'

const source = new URL('../../../src/policy/propose/hosts.ts', import.meta.url).href

/** As an agent with a domain of its own can have them. */
const marking = `
  const label = (count, length) => (count.toString(36) + 'abcdefghijklmnopqrstuvwxyz'.repeat(3)).slice(0, length)
  const hosts = Array.from({ length: 1_000 }, (_, at) =>
    [1, 7, 13, 19].map(times => label(at * times, 58)).join('.') + '.example')
  const recorded = [...hosts, hosts[5].replace('abc', 'abbc')].map(host => (
    { agentId: 'a', at: 0, counted: { days: [1, 2] }, shape: { origin: 'https://' + host } }))
  import(${JSON.stringify(source)}).then(({ markedHosts }) =>
    require('node:worker_threads').parentPort.postMessage(markedHosts(recorded).size))`

t.test('a thousand long names take less than 64 MiB', async t => {
  const worker = new Worker(marking, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 } })
  const [found] = await once(worker, 'message')
  t.equal(found, 2, 'the two that are alike')
})
