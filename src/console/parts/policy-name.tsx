import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import { Text } from './text.tsx'

/** The name of a policy, with a link for those who may read it. */
export function PolicyName({ name }: { readonly name: string }) {
  const text = <Text value={name} limit={120} />
  return mayRead.value ? <a href={hrefOf('policies', name)}>{text}</a> : text
}
