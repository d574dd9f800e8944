/**
 * Checks for leaks under load: `npm run soak`, or one half of it with `npm run soak -- server` or `npm run soak --
 * client`. `--quick` runs a small part of it.
 *
 * The server half opens thousands of sessions and streams and drops them abruptly. The client half opens and closes
 * thousands of clients in one process, and restarts their server again and again.
 *
 * It fails when a session, stream, fiber, socket, timer or process remains that was not there before, when the heap
 * grows by more than the bound, or when the heap has many more objects of one class.
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

const problems = [
  ...isSelected("client") ? await soakClient(values.quick ? 0.06 : 1, print) : [],
  ...isSelected("server") ? await soakServer(values.quick ? quick : thorough, print) : []
]
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
