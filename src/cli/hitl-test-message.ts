import { receiversOf } from '../gateway/receivers.ts'
import { testChannels } from '../gateway/slack.ts'
import type { HitlEvent } from '../hitl/events.ts'
import type { TestedService } from '../hitl/push/push.ts'
import type { Receiver } from '../hitl/receiver.ts'
import { systemClock } from '../runtime/clock.ts'
import { type AskParts, askedIn, askGateway, gatewayHelp, gatewayOptions } from './ask-gateway.ts'
import { configHelp } from './configuration.ts'
import { atHelp } from './gateway-address.ts'
import { jsonHelp, printJson, readArgs, type Shell } from './shell.ts'
import { upstreamsOf } from './upstreams.ts'

export const help = `usage: agent-gateway hitl test-message [--json] [--config FILE] [--at ADDRESS]

Sends one message about a request that does not exist to each webhook and channel of Slack, by e-mail, and to each browser that gets pushes, as the
settings of HumanInTheLoop say. Prints who accepted it. Exit code 0 when all did, else 1. The gateway must run for pushes alone: it knows the browsers.

${jsonHelp}: receivers with name, ok, failure
${configHelp}
${atHelp}
${gatewayHelp}

Examples:
  agent-gateway hitl test-message --config /etc/agent-gateway/gateway.yaml`

interface TestedReceiver {
  readonly name: string
  readonly ok: boolean
  readonly failure: string | null
}

export async function run(shell: Shell): Promise<number> {
  const { values } = readArgs(shell, gatewayOptions)
  const asked = askedIn(shell, values)
  const { config } = asked.configuration
  const upstreams = await upstreamsOf(asked.configuration, shell.env)
  try {
    const others = testChannels(config, upstreams.ownRequests)
    const { post } = upstreams.ownRequests
    const receivers = receiversOf({ config, clock: systemClock, upstreams, post, others })
    const pushes = config.HumanInTheLoop.Push.Enabled ? testPushes(shell, asked) : []
    const tested = [...(await Promise.all(receivers.map(test))), ...(await pushes)]
    if (values.json === true) printJson(shell, { receivers: tested })
    else print(shell, tested)
    return tested.length > 0 && tested.every(({ ok }) => ok) ? 0 : 1
  } finally {
    upstreams.connections.close()
  }
}

function print(shell: Shell, tested: readonly TestedReceiver[]): void {
  if (tested.length === 0) shell.complain('No receiver is set. Add HumanInTheLoop:Webhooks, Slack, Email or Push.')
  for (const { name, ok, failure } of tested) {
    if (ok) shell.print(`${name}: accepted`)
    else shell.complain(`${name}: not accepted: ${failure}`)
  }
}

async function test(receiver: Receiver): Promise<TestedReceiver> {
  // Every receiver has a queue.
  const name = receiver.queues[0]?.label ?? ''
  try {
    const refused = await receiver.send(sample(), new AbortController().signal)
    return { name, ok: refused === undefined, failure: refused === undefined ? null : textOf(refused.failure) }
  } catch (error) {
    return { name, ok: false, failure: textOf(error) }
  }
}

/** The gateway sends them: it has the browsers and the key. */
async function testPushes(shell: Shell, parts: AskParts): Promise<readonly TestedReceiver[]> {
  try {
    const call = { method: 'POST', path: '/console/push-test' } as const
    const { services } = await askGateway<{ readonly services: readonly TestedService[] }>(shell, parts, call)
    const nobody = { name: 'Pushes', ok: false, failure: 'nobody has switched notifications on in the console' }
    if (services.length === 0) return [nobody]
    return services.map(({ name, accepted, failure }) => {
      return { name: `Push service ${name} (${accepted})`, ok: failure === null, failure }
    })
  } catch (error) {
    return [{ name: 'Pushes', ok: false, failure: textOf(error) }]
  }
}

const textOf = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure))

/** A request that nobody has sent: its id is in no list. */
function sample(): HitlEvent {
  const now = systemClock.now()
  return {
    ...{ id: 'test', type: 'pending', at: now, hitlId: 'test' },
    data: {
      ...{ id: 'test', method: 'POST', url: 'https://example.org/test-message', digest: null },
      ...{ title: 'A test message: nothing waits', operation: null, reason: 'agent-gateway hitl test-message' },
      ...{ agentId: 'test', agentName: 'test', ownerId: 'test', rule: null, policyName: null, ruleReason: null },
      expiresAt: new Date(now + 60_000).toISOString(),
    },
  }
}
