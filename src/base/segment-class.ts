/** Classes of path segments: values of one kind that stand in the same place, such as ids. */
export interface SegmentClass {
  readonly name: string
  readonly holds: (segment: string) => boolean
  /** A segment of the class. */
  readonly sample: string
}

const ofPattern = (name: string, pattern: RegExp, sample: string): SegmentClass => ({
  name,
  holds: segment => pattern.test(segment),
  sample,
})

/** From narrow to wide where one is within another; none of them holds for a word. */
export const segmentClasses: readonly SegmentClass[] = [
  ofPattern('int', /^\d{1,19}$/, '7'),
  ofPattern('date', /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/, '2026-01-05'),
  ofPattern(
    'uuid',
    /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i,
    '7d444840-9dc0-41d1-b245-5ffdce74fad2',
  ),
  ofPattern('hex', /^[\da-f]{16,}$/i, '9dc041d1b2455ffd'),
  ofPattern('key', /^(?=.*\d)[\w-]{16,}$/, 'cus_9dc041d1b245'),
]

const byName: ReadonlyMap<string, SegmentClass> = new Map(segmentClasses.map(each => [each.name, each]))

export function segmentClass(name: string): SegmentClass | undefined {
  return byName.get(name)
}
