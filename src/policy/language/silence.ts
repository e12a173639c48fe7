import { Keys } from './keys.ts'
import { limits, type RuleWarning, ruleWarnings, type Silence } from './model.ts'
import type { Problems } from './problems.ts'

const silenceKeys = ['code', 'reason']

/** The warnings that a rule silences. Each needs a reason: the next author must see why. */
export function readSilence(rule: Keys, problems: Problems): readonly Silence[] {
  const entries = rule.get('silence') ?? []
  if (!Array.isArray(entries) || entries.length > ruleWarnings.length) {
    rule.problem('E_VALUE', 'silence', 'silence must be a list of warnings, each with code and reason')
    return []
  }
  const found = new Map<RuleWarning, Silence>()
  for (const [index, entry] of entries.entries()) {
    const path = `${rule.at('silence')}[${index}]`
    const keys = Keys.of(entry, { path, known: silenceKeys, ignored: [] }, problems)
    const silence = keys === undefined ? undefined : readEntry(keys)
    if (keys === undefined) problems.add('E_VALUE', path, 'must be a map with code and reason')
    if (silence === undefined) continue
    if (found.has(silence.code)) problems.add('E_DUPLICATE', path, `${silence.code} must be silenced once`)
    found.set(silence.code, silence)
  }
  return [...found.values()]
}

function readEntry(keys: Keys): Silence | undefined {
  const code = keys.oneOf('code', ruleWarnings)
  const reason = keys.text('reason', '').trim()
  const fits = reason !== '' && reason.length <= limits.silenceReason
  if (!fits)
    keys.problem(
      'E_VALUE',
      'reason',
      `reason must say in 1 to ${limits.silenceReason} characters why the warning does not apply`,
    )
  return code !== undefined && fits ? { code, reason } : undefined
}
