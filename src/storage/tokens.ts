/** Which tokens are valid, in the storage contract. */
export interface TokenTable {
  /**
   * The text that the keys of tokens are derived with, 32 hexadecimal digits. None until tokens were made void for the
   * first time.
   */
  all(): Promise<readonly string[]>
}
