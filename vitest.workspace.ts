import { defineConfig } from "vitest/config"

const conditions = ["@skein/source", "node", "import", "module", "default"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@skein/source"] } },
  test: {
    include: ["packages/*/test/**/*.test.ts", "interop/**/*.test.ts", "examples/**/*.test.ts"],
    testTimeout: 30_000
  }
})
