import { defineConfig } from "vitest/config"

// Tests run from source: the workspaces' exports name it under this condition, so that no build comes before a test.
// Not "import", which is there for imports anyway, and would hold for the `require` of packages outside as well.
const conditions = ["@skein/source", "node", "module", "default"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ["@skein/source"] } },
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "interop/**/*.test.ts",
      "docs/**/*.test.ts",
      "examples/**/*.test.ts",
      "scripts/**/*.test.ts"
    ],
    globalSetup: ["./scripts/setup.ts"],
    reporters: ["default", "./scripts/reporter.ts"],
    // Processes, not threads: the tests of stdio and of leaks look at the process. Two at a time suit two cores.
    pool: "forks",
    maxWorkers: 2,
    execArgv: ["--expose-gc", "--conditions=@skein/source"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000
  }
})
