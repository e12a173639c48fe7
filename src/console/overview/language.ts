/** uPlot formats numbers in the language of the browser as soon as it is loaded, and fails where that is no language tag. */
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
}
