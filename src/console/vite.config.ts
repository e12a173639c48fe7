import { defineConfig } from 'vite'

/** Paths are relative, so that the console also works below a prefix of a proxy in front. */
export default defineConfig({
  base: './',
  publicDir: false,
  build: {
    outDir: '../../dist/console',
    emptyOutDir: true,
    target: ['chrome120', 'firefox121', 'safari17.4'],
    // The polyfill is inline code, and every browser of the target has the real thing.
    modulePreload: { polyfill: false },
    // Pictures as files of their own are hashed and cached like everything else.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // Small files of their own compress badly: together these pages are a quarter smaller. What the queue needs stays out.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            // On its page alone, with the names of the language that are made beside the types.
            {
              name: 'editor',
              test: /console\/(?:types|policies\/(?:edit|check|seed|text-area|completion|places|diff|diff-view|publish-dialog|tests|kept|origin-notices|trial|tried))\./,
              priority: 1,
            },
            {
              name: 'pages',
              test: /src\/console\/(?:history|grants|agents|policies|make|audit|parts\/(?:choice|filters))\b/,
            },
          ],
        },
      },
    },
  },
})
