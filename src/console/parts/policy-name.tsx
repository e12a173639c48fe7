import { hrefOf } from '../router.ts'
import { mayRead } from '../session.ts'
import { Text } from './text.tsx'

/** The name of a policy, with a link for those who may read it. */
export const PolicyName = ({ name }: { readonly name: string }) => (
  <Text value={name} limit={120} href={mayRead.value ? hrefOf('policies', name) : undefined} />
)
