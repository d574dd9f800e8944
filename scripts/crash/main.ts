/**
 * Tasks whose processes are killed: `npm run crash`, or only with one store: `npm run crash -- sqlite`, `npm run crash -- postgres`. With
 * `--seed` for the random of a run before, `--quick` for less of it.
 *
 * SQLite: the one process is killed at random moments, again and again, and at every commit of its database. PostgreSQL: workers, front
 * servers and the database are killed, stopped and told to end, at random moments and at known ones, and join and leave; and how long
 * tasks stand still then is measured.
 */
import { parseArgs } from "node:util"
import { crash, line, type Plan, type Report } from "../../packages/tasks/test/crash/crash.ts"
import { everywhere } from "../../packages/tasks/test/crash/killAtCommits.ts"
import { kindOf } from "../../packages/tasks/test/crash/orders.ts"
import { run } from "../../packages/tasks/test/crash/postgres/run.ts"
import { unavailable } from "../../packages/sql/test/postgres.ts"

const { positionals, values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, seed: { type: "string" } },
  allowPositionals: true
})
const wanted = (store: string): boolean => positionals.length === 0 || positionals.includes(store)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const thorough: Plan = { orders: 200, concurrency: 20, pace: 150, life: 2_000, kills: 1_000, later: false, seed }
const quick: Plan = { orders: 40, concurrency: 20, pace: 100, life: 1_500, kills: 1_000, later: true, seed }

/** What it takes for the run to have shown anything. */
const idle = ({ kills, repeated, survived }: Report): ReadonlyArray<string> =>
  kills >= 5 && repeated > 0 && survived > 0 ? [] : ["The kills came at moments that show nothing: try another seed"]

let failed = false
const timed = async (what: string, run: () => Promise<readonly [string, ReadonlyArray<string>]>): Promise<void> => {
  const begun = performance.now()
  console.log(what)
  const [report, problems] = await run()
  console.log(`  ${report}; ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  for (const problem of problems) console.error(`  ${problem}`)
  failed ||= problems.length > 0
}

const sqlite = async (): Promise<void> => {
  await timed(
    `SQLite, ${values.quick ? 40 : 200} tasks, SIGKILL and SIGTERM at random moments: --seed ${seed}`,
    async () => {
      const report = await crash(values.quick ? quick : thorough)
      return [line(report), values.quick ? report.problems : [...report.problems, ...idle(report)]]
    }
  )

  if (!values.quick) {
    // From the migrations on; the others from where they begin to differ: a question that is never answered, a failure, a cancellation.
    for (const [order, first] of [[1, 1], [5, 20], [4, 28], [3, 19]] as const) {
      await timed(`SQLite, SIGKILL right before each commit of a task (${kindOf(order)})`, async () => {
        const { deaths, problems } = await everywhere(order, "before", first)
        return [
          `${deaths} deaths`,
          deaths < 10 ? [...problems, "There are fewer commits than there must be"] : problems
        ]
      })
    }
  }
}

const postgres = async (): Promise<void> => {
  console.log(`PostgreSQL, three workers and a front server: --seed ${seed}`)
  const problems = unavailable === undefined ? await run({ quick: values.quick, seed }, console.log) : [unavailable]
  for (const problem of problems) console.error(`  ${problem}`)
  failed ||= problems.length > 0
}

if (wanted("sqlite")) await sqlite()
if (wanted("postgres")) await postgres()
process.exitCode = failed ? 1 : 0
