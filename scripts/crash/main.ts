/**
 * Tasks in a SQLite file whose process is killed again and again: `npm run crash`. With `--seed` as a run before, `--quick` less of it.
 */
import { parseArgs } from "node:util"
import { crash, line, type Plan } from "../../packages/tasks/test/crash/crash.ts"

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, seed: { type: "string" } }
})
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const thorough: Plan = { orders: 200, concurrency: 20, pace: 150, life: 2_000, seed, kills: 1_000 }
const quick: Plan = { orders: 40, concurrency: 20, pace: 100, life: 1_500, seed, kills: 1_000 }

const begun = performance.now()
console.log(`SQLite, kill -9 at random moments: --seed ${seed}`)
const report = await crash(values.quick ? quick : thorough)
console.log(line(report, (performance.now() - begun) / 1000))
for (const problem of report.problems) console.error(problem)
process.exitCode = report.problems.length === 0 ? 0 : 1
