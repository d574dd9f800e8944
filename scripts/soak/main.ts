/**
 * Checks for leaks under load: `npm run soak`, or one half of it with `npm run soak -- server` or `npm run soak --
 * client`. `--quick` runs a small part of it, as `.ci/run` does.
 *
 * The server half opens thousands of sessions and streams and drops them abruptly. The client half opens and closes
 * thousands of clients in one process, and restarts their server again and again.
 *
 * It fails when a session, stream, fiber, socket, timer or process remains that was not there before, when the heap
 * grows by more than the bound, or when the heap has many more objects of one class. It also fails, with its state, when
 * the program of the client half does not end within 20 minutes, or a slice of the server half within 10.
 */
import { parseArgs } from "node:util"
import { soakClient } from "./client/soakClient.ts"
import { type Plan, soakServer } from "./server/soakServer.ts"

const thorough: Plan = { warmUp: 4_000, goal: 100_000, slices: 10, maxGrowth: 1_000_000, maxObjects: 100 }
const quick: Plan = { warmUp: 1_000, goal: 2_000, slices: 2, maxGrowth: 1_000_000, maxObjects: 80 }

const { positionals, values } = parseArgs({
  options: { quick: { type: "boolean", default: false } },
  allowPositionals: true
})
const isSelected = (half: string): boolean => positionals.length === 0 || positionals.includes(half)
const print = (line: string): void => console.log(line)

const halves = [
  ["client", () => soakClient(values.quick ? 0.06 : 1, print)],
  ["server", () => soakServer(values.quick ? quick : thorough, print)]
] as const

let failed = false
for (const [half, soak] of halves) {
  if (!isSelected(half)) continue
  const problems = await soak().catch((error: unknown) => [error])
  for (const problem of problems) console.error(problem)
  failed ||= problems.length > 0
}
// After a missed deadline, open connections would keep the process alive.
process.exit(failed ? 1 : 0)
