import { LRUCache as Cache } from 'lru-cache'

/**
 * The bounded maps of this program: what was used least recently leaves first. They grow with what they hold; with its
 * option `max`, the package would allocate all places at once, 0.4 MiB for 20,000.
 */
export class LRUCache<K extends {}, V extends {}> extends Cache<K, V> {
  /**
   * @param options.max entries
   * @param options.dispose called for each entry that leaves or is replaced
   */
  constructor({ max, dispose }: { readonly max: number; readonly dispose?: (value: V, key: K) => void }) {
    super({ maxSize: max, sizeCalculation: () => 1, ...(dispose && { dispose }) })
  }
}
