/**
 * Benchmarks against other libraries, and of two checkouts against each other: `npm run bench -- <benchmark> [--quick]`.
 * Each prints ratios of one interleaved run. Nothing is asserted.
 */
const benchmarks: Readonly<
  Record<string, () => Promise<{ readonly main: (args: ReadonlyArray<string>) => Promise<void> }>>
> = {
  start: () => import("./start/main.ts"),
  install: () => import("./start/install.ts"),
  stdio: () => import("./stdio/main.ts"),
  http: () => import("./http/main.ts"),
  workers: () => import("./workers/main.ts"),
  client: () => import("./client/main.ts"),
  tasks: () => import("./tasks/main.ts"),
  "tasks-costs": () => import("./tasks/costs.ts"),
  fleet: () => import("./fleet/main.ts"),
  growth: () => import("./growth/main.ts"),
  auth: () => import("./auth/main.ts"),
  compare: () => import("./compare/main.ts")
}

const [name = "", ...args] = process.argv.slice(2)
const benchmark = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined

if (benchmark === undefined) {
  console.error(`usage: npm run bench -- ${Object.keys(benchmarks).join("|")} [--quick]`)
  process.exitCode = 2
} else {
  try {
    await (await benchmark()).main(args)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(1)
  }
}
