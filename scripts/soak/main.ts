/**
 * The soak: sessions and streams by the thousand, opened and dropped rudely, and then a look at what they have left behind. With
 * `--quick` fewer of them.
 *
 * It fails when something is left: a session, a stream, a fiber, a socket or a timer more than before, a heap that grew by more than
 * the bound, or one kind of object of which there are hundreds more.
 */
import { parseArgs } from "node:util"
import { type Plan, soak } from "./soak.ts"

const thorough: Plan = { warmUp: 4_000, goal: 100_000, slices: 10, maxGrowth: 1_000_000, maxObjects: 100 }
const quick: Plan = { warmUp: 1_000, goal: 2_000, slices: 2, maxGrowth: 1_000_000, maxObjects: 80 }

const { values } = parseArgs({ options: { quick: { type: "boolean", default: false } } })

const problems = await soak(values.quick ? quick : thorough, (line) => console.log(line))
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
