import { readFileSync } from 'node:fs'
import t from 'tap'
import { startGateway } from '../fixtures/gateway.ts'

interface Case {
  readonly id: string
  readonly title: string
  readonly policy: Readonly<Record<string, unknown>>
  readonly request: Readonly<Record<string, unknown>>
  readonly phase?: string
  readonly riskThreshold?: number
  readonly expected: Readonly<Record<string, unknown>> & {
    readonly errors?: readonly { readonly code: string; readonly path: string }[]
  }
  readonly alsoCheck?: readonly Pick<Case, 'request' | 'expected'>[]
}

const file = new URL('../cases/policy-cases.json', import.meta.url)
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: readonly Case[] }
const gateway = await startGateway(t)

for (const one of cases) {
  t.test(`${one.id} over the API: ${one.title}`, async t => {
    const name = `case-${one.id}`
    const made = await gateway.manage('POST', '/policies', { ...one.policy, name })
    if (one.expected.errors !== undefined) {
      t.equal(made.status, 400)
      const { errors } = JSON.parse(made.text) as { errors: readonly { code: string; field: string }[] }
      t.strictSame(
        errors.map(({ code, field }) => ({ code, path: field })),
        one.expected.errors,
      )
      t.equal((await gateway.manage('GET', `/policies/${name}`)).status, 404, 'nothing was kept')
      return
    }
    t.equal(made.status, 201, made.text)
    for (const check of [one, ...(one.alsoCheck ?? [])]) {
      const { risk, ...request } = { ...one.request, ...check.request } as Record<string, unknown>
      const answer = await gateway.manage('POST', `/policies/${name}/explain`, {
        request,
        ...(risk === undefined ? {} : { risk }),
        ...(one.phase === undefined ? {} : { phase: one.phase }),
        ...(one.riskThreshold === undefined ? {} : { riskThreshold: one.riskThreshold }),
      })
      const { refused } = check.expected
      if (refused !== undefined) {
        t.match(JSON.parse(answer.text), { status: 400, code: refused })
        continue
      }
      t.equal(answer.status, 200, answer.text)
      t.match(JSON.parse(answer.text).result, check.expected)
    }
  })
}
