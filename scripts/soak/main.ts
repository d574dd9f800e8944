/**
 * The soak: `npm run soak`, or only one half of it: `npm run soak -- server`, `npm run soak -- client`. With `--quick` less of it.
 *
 * The server: sessions and streams by the thousand, opened and dropped rudely, and then a look at what they have left behind. The
 * client: a host that opens and closes clients by the thousand, and loses its server again and again.
 *
 * It fails when something is left: a session, a stream, a fiber, a socket, a timer or a process more than before, a heap that grew by
 * more than the bound, or one kind of object of which there are hundreds more.
 */
import { parseArgs } from "node:util"
import { host } from "./client/process.ts"
import { type Plan, soak } from "./soak.ts"

const thorough: Plan = { warmUp: 4_000, goal: 100_000, slices: 10, maxGrowth: 1_000_000, maxObjects: 100 }
const quick: Plan = { warmUp: 1_000, goal: 2_000, slices: 2, maxGrowth: 1_000_000, maxObjects: 80 }

const { positionals, values } = parseArgs({
  options: { quick: { type: "boolean", default: false } },
  allowPositionals: true
})
const wanted = (half: string): boolean => positionals.length === 0 || positionals.includes(half)
const print = (line: string): void => console.log(line)

const problems = [
  ...wanted("client") ? await host(values.quick ? 0.06 : 1, print) : [],
  ...wanted("server") ? await soak(values.quick ? quick : thorough, print) : []
]
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
