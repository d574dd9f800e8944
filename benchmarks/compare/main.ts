/**
 * Compares the built Skein of this checkout with the one of another checkout, for instance of the commit before a
 * change. Both must have been built. The ratios are the only result: above 1 this checkout is faster.
 */
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Server } from "../client/processes.ts"
import { pin } from "../lib/childProcesses.ts"
import { describe } from "../lib/machine.ts"
import { count, markdown } from "../lib/table.ts"
import { Databases } from "../tasks/databases.ts"
import { compare, type Plan } from "./alternation.ts"
import { prepare, type Workload, workloads } from "./workloads.ts"

const groups: ReadonlyArray<Workload["group"]> = ["http", "stdio", "client", "tasks"]
const usage = `usage: npm run bench -- compare <checkout> [--quick] [--only=${groups.join("|")}] [--title=text]`

/** Runs the comparison and prints its table. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const [checkout, ...options] = args
  if (checkout === undefined || checkout.startsWith("-")) throw new Error(usage)
  let selected = workloads
  let quick = false
  for (const option of options) {
    const value = option.slice(option.indexOf("=") + 1)
    if (option === "--quick") quick = true
    else if (option.startsWith("--only=")) selected = selected.filter(({ group }) => group === value)
    else if (option.startsWith("--title=")) selected = selected.filter(({ title }) => title.includes(value))
    else throw new Error(`${option}: not an option\n${usage}`)
  }
  if (selected.length === 0) throw new Error(`no such workload\n${usage}`)
  const now = await prepare(fileURLToPath(new URL("../..", import.meta.url)))
  const before = await prepare(resolve(checkout))
  console.log(`${describe()} · npm run bench -- ${["compare", ...args].join(" ")}\n`)
  if (!pin() || !before.processes.pin()) console.log("Processes cannot be pinned: the ratios are less reliable.\n")
  const shared = { server: await Server.start(), databases: new Databases() }
  const rows: Array<ReadonlyArray<string>> = []
  try {
    for (const { open, plan, title } of selected) {
      const reduced: Plan = quick ? { ...plan, starts: 4, pairs: Math.ceil(plan.pairs / 2) } : plan
      const ratio = await compare({ before: () => open(before, shared), now: () => open(now, shared) }, reduced)
      const interval = `${ratio.low.toFixed(3)}–${ratio.high.toFixed(3)}`
      console.log(`${title}: ${ratio.mean.toFixed(3)} (${interval})`)
      rows.push([title, ratio.mean.toFixed(3), interval, count(ratio.before), count(ratio.now)])
    }
  } finally {
    await shared.server.stop()
    await shared.databases.stop()
  }
  console.log(`\n${markdown(["workload", "now / before", "95 % interval", "before / s", "now / s"], rows)}`)
}
