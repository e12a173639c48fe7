/** Any of these texts, in which `*` stands for any text; letter case does not matter. */
export const wildcard = (texts: readonly string[]): RegExp => new RegExp(`^(?:${texts.map(patternOf).join('|')})$`, 'i')

const patternOf = (text: string): string => text.split('*').map(escaped).join('.*')
const escaped = (text: string): string => text.replace(/[\\^$.+?()[\]{}|]/g, '\\$&')
