/**
 * Operations per second and their processor time: every client in each round, compared with the bare client in the same
 * round.
 */
import { ratios, spread } from "../lib/statistics.ts"
import { type Era, revisionOf } from "../stdio/messages.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import type { Burst } from "./driver.ts"
import type { Job } from "./testClient.ts"
import type { Peer } from "./peers.ts"
import { type ResponseMode, Runner, type Server } from "./processes.ts"

export interface Plan {
  /** The number of rounds, and the duration of a round and of the warm-up in milliseconds. */
  readonly rounds: number
  readonly millis: number
  readonly warmUp: number
}

/** A workload for all clients. */
export interface Workload {
  readonly name: string
  readonly title: string
  readonly job: Job
  readonly inFlight: number
  readonly mode: ResponseMode
  readonly includes: (peer: Peer) => boolean
}

/** A client and its measurements. */
interface Entry {
  readonly runner: Runner
  readonly bursts: Array<Burst>
  serverCpu: number
}

const total = (bursts: ReadonlyArray<Burst>, of: (burst: Burst) => number): number =>
  bursts.reduce((sum, burst) => sum + of(burst), 0)

const ratesOf = ({ bursts }: Entry): ReadonlyArray<number> => bursts.map(({ turns, wall }) => turns / wall * 1_000)

const costsOf = ({ bursts }: Entry): ReadonlyArray<number> => bursts.map(({ cpu, turns }) => cpu / turns * 1_000)

const rowOf = (entry: Entry, base: Entry): Row => {
  const { bursts, runner: { peer }, serverCpu } = entry
  const wall = total(bursts, (burst) => burst.wall)
  return {
    peer: peer.name,
    label: peer.label,
    figures: {
      ratio: ratios(ratesOf(entry), ratesOf(base)),
      rate: spread(ratesOf(entry)),
      micros: spread(costsOf(entry)),
      cost: ratios(costsOf(entry), costsOf(base)),
      busy: total(bursts, (burst) => burst.cpu) / wall * 100,
      server: serverCpu / wall * 100
    },
    samples: { rate: ratesOf(entry), micros: costsOf(entry) }
  }
}

/**
 * Measures all workloads in one era, with one process per client. A client that fails has a remark in the table; a
 * failure of the bare client ends the benchmark.
 */
export const run = async (
  server: Server,
  peers: ReadonlyArray<Peer>,
  era: Era,
  workloads: ReadonlyArray<Workload>,
  plan: Plan,
  show: (measure: Measure) => void
): Promise<void> => {
  const runners = peers.filter((peer) => peer.eras.includes(era)).map((peer) => new Runner(peer))
  try {
    for (const workload of workloads) {
      const included = runners.filter(({ peer }) => peer.name === "bare" || workload.includes(peer))
      if (included.length > 1) show(await measure(server, included, era, workload, plan))
    }
  } finally {
    await Promise.all(runners.map((runner) => runner.stop()))
  }
}

/** Whether the client rejects a structured result that violates the output schema. */
const validatesResults = (runner: Runner): Promise<boolean> =>
  runner.burst("invalid", 1, 1).then(() => false, (error: Error) => !error.message.startsWith("report"))

const measure = async (
  server: Server,
  runners: ReadonlyArray<Runner>,
  era: Era,
  workload: Workload,
  plan: Plan
): Promise<Measure> => {
  const { inFlight, job, mode, name, title } = workload
  const entries: Array<Entry> = runners.map((runner) => ({ runner, bursts: [], serverCpu: 0 }))
  const failures = new Map<Entry, Row>()
  const each = async (action: (entry: Entry) => Promise<void>): Promise<void> => {
    for (const entry of entries) {
      if (failures.has(entry)) continue
      try {
        await action(entry)
      } catch (error) {
        const { peer } = entry.runner
        if (peer.name === "bare") throw error
        failures.set(entry, failure(peer, error))
      }
    }
  }
  await each(async ({ runner }) => {
    await runner.connect(server.url(era, mode), era, true)
    if (job === "report" && await validatesResults(runner) !== runner.peer.validates) {
      throw new Error(`the client ${runner.peer.validates ? "does not validate" : "validates"} structured results`)
    }
    await runner.burst(job, inFlight, plan.warmUp)
  })
  for (let round = 0; round < plan.rounds; round++) {
    await each(async (entry) => {
      // The first operations open sockets again that closed while idle.
      await entry.runner.burst(job, inFlight, 50)
      const before = server.cpu()
      entry.bursts.push(await entry.runner.burst(job, inFlight, plan.millis))
      entry.serverCpu += server.cpu() - before
    })
  }
  const unit = job === "greet" || job === "report" ? "call" : "list"
  return {
    name,
    era,
    title: `${title}, ${revisionOf[era]}`,
    columns: [
      { key: "ratio", title: `${unit}s/s / bare`, unit: "ratio" },
      { key: "rate", title: `${unit}s/s`, unit: "count" },
      { key: "cost", title: "CPU / bare", unit: "ratio" },
      { key: "micros", title: `CPU µs/${unit}`, unit: "decimal" },
      { key: "busy", title: "client busy", unit: "percent" },
      { key: "server", title: "server busy", unit: "percent" }
    ],
    rows: entries.map((entry) => failures.get(entry) ?? rowOf(entry, entries[0]!))
  }
}
