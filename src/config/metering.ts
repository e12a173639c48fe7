import { hostAndPort } from './formats.ts'
import { boolean, list } from './setting.ts'

/** Settings under `Metering`: what calls of models use. */
export const metering = {
  Usage: boolean(
    false,
    'Read from the answers of model providers how many tokens each call used, for the log and the metrics. These calls ask for answers without compression.',
  ),
  Hosts: list(
    'Model servers beside the known providers, such as vllm.internal:8000: a name or pattern, with :port unless it is the usual one.',
    hostAndPort,
  ),
} as const
