/**
 * The benchmark of workers: calls per second and processor time per call of 1, 2 and 4 processes, in interleaved rounds. The
 * processor time is that of all processes. The rate depends on the processors that the load generator leaves free.
 */
import { describe } from "../lib/machine.ts"
import { ratioConfidence } from "../lib/statistics.ts"
import { type Peer, prepare } from "../http/peers.ts"
import { type Measure, render } from "../http/report.ts"
import * as throughput from "../http/throughput.ts"
import { unbuiltPackages } from "../tasks/processes.ts"
import { requireWrk } from "../http/wrk.ts"

const thorough: throughput.Plan = { rounds: 7, seconds: 2, warmUp: 3 }
const quick: throughput.Plan = { rounds: 2, seconds: 1, warmUp: 1 }

const counts = [1, 2, 4]

/** Adds the processor time per call, compared with one process in the same round. */
const withCost = (measure: Measure): Measure => {
  const costs = measure.rows.map(({ samples }) => samples?.["micros"] ?? [])
  return {
    ...measure,
    columns: [...measure.columns, { key: "cost", title: "µs/call / 1 process", unit: "ratio" }],
    rows: measure.rows.map((row, index) =>
      row.samples === undefined
        ? row
        : { ...row, figures: { ...row.figures, cost: ratioConfidence(costs[index]!, costs[0]!) } }
    )
  }
}

const usage = "usage: npm run bench -- workers [--quick] [--source]"

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const unknown = args.find((arg) => arg !== "--quick" && arg !== "--source")
  if (unknown !== undefined) throw new Error(`${unknown}: not an option\n${usage}`)
  requireWrk()
  const isBuilt = unbuiltPackages().length === 0
  if (!isBuilt) console.log("Skein runs from its sources: its packages are not built.\n")
  const source = args.includes("--source") || !isBuilt
  const peers = counts.map((count): Peer => ({
    name: `workers-${count}`,
    label: count === 1 ? "1 process" : `${count} workers`,
    eras: ["session", "request"],
    program: "workers",
    args: [`--workers=${count}`],
    source
  }))
  await prepare(peers)
  console.log(`${describe()} · npm run bench -- ${["workers", ...args].join(" ")}\n`)
  for (const era of ["session", "request"] as const) {
    const measure = await throughput.measure(
      peers,
      era,
      throughput.calls,
      args.includes("--quick") ? quick : thorough,
      peers[0]!
    )
    console.log(`${render(withCost(measure), "processes")}\n`)
  }
}
