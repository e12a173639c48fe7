/** Longest URL in the trail, which is never deleted, characters. The digest is over the whole request. */
const longestUrl = 512

/** A URL or its path for an entry of the trail. */
export function shortUrl(url: string): string {
  return url.length <= longestUrl ? url : `${url.slice(0, longestUrl)}...`
}
