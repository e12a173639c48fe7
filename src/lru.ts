/** The bounded maps of this program: what was used least recently leaves first. */
export { LRUCache } from 'lru-cache'
