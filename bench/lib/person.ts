import type { Locator, Page } from 'playwright-core'

/** Seconds of the keystroke-level model (Card, Moran, Newell 1980), for somebody who types well. */
const keySeconds = 0.2
const pointSeconds = 1.1
const clickSeconds = 0.2
const thinkSeconds = 1.35

/** Somebody who knows the page: counts the steps, and how long a person takes for them, without reading. */
export class Person {
  readonly page: Page
  steps = 0
  seconds = 0

  constructor(page: Page) {
    this.page = page
  }

  async click(what: Locator): Promise<void> {
    this.#step(thinkSeconds + pointSeconds + clickSeconds)
    await what.click()
  }

  /** Keys that a practised person knows as one. */
  async keys(...keys: readonly string[]): Promise<void> {
    this.seconds += thinkSeconds
    for (const key of keys) {
      this.#step(keySeconds * key.split('+').length)
      await this.page.keyboard.press(key)
    }
  }

  /** Into what has the focus. */
  async type(text: string): Promise<void> {
    this.#step(keySeconds * text.length)
    await this.page.keyboard.insertText(text)
  }

  async fill(field: Locator, text: string): Promise<void> {
    this.#step(thinkSeconds + pointSeconds + clickSeconds + keySeconds * text.length)
    await field.fill(text)
  }

  async choose(field: Locator, option: string): Promise<void> {
    this.#step(thinkSeconds + 2 * (pointSeconds + clickSeconds))
    await field.selectOption(option)
  }

  #step(seconds: number): void {
    this.steps += 1
    this.seconds += seconds
  }
}
