/**
 * Races side by side: `npm run bench -- <race> [--quick]`. Ratios of one interleaved run are printed; nothing is asserted.
 */
const races: Readonly<
  Record<string, () => Promise<{ readonly main: (args: ReadonlyArray<string>) => Promise<void> }>>
> = {
  stdio: () => import("./stdio/main.ts"),
  http: () => import("./http/main.ts"),
  client: () => import("./client/main.ts"),
  tasks: () => import("./tasks/main.ts")
}

const [name = "", ...args] = process.argv.slice(2)
const race = Object.hasOwn(races, name) ? races[name] : undefined

if (race === undefined) {
  console.error(`usage: npm run bench -- ${Object.keys(races).join("|")} [--quick]`)
  process.exitCode = 2
} else {
  try {
    await (await race()).main(args)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(1)
  }
}
