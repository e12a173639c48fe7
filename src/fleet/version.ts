/** Whether version `a` (1.2.3, or 1.2.3-beta.1) comes before `b`. What follows the three numbers does not count. */
export function isOlder(a: string, b: string): boolean {
  const [first, second] = [numbersOf(a), numbersOf(b)]
  for (let index = 0; index < 3; index++) {
    const difference = (first[index] ?? 0) - (second[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

const numbersOf = (version: string): readonly number[] =>
  version
    .replace(/-.*$/, '')
    .split('.')
    .map(part => Number.parseInt(part, 10) || 0)
