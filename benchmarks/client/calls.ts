/**
 * Turns per second, and what one costs the client: each client in turn, round by round, compared with the bare one in the same round.
 */
import { ratios, spread } from "../lib/statistics.ts"
import { type Era, revisionOf } from "../stdio/wire.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import type { Burst } from "./driver.ts"
import type { Job } from "./face.ts"
import type { Peer } from "./peers.ts"
import { type Manner, Runner, type Server } from "./processes.ts"

export interface Plan {
  /** Rounds, and how long a client is driven in each and before anything counts, in milliseconds. */
  readonly rounds: number
  readonly millis: number
  readonly warmUp: number
}

/** One race of all clients. */
export interface Race {
  readonly name: string
  readonly title: string
  readonly job: Job
  readonly inFlight: number
  readonly manner: Manner
  readonly takesPart: (peer: Peer) => boolean
}

/** A client in a race, and what came of it. */
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
 * Runs all races in one era, with one process per client. One that fails is told of, and the others go on; without the bare one there
 * is no race.
 */
export const run = async (
  server: Server,
  peers: ReadonlyArray<Peer>,
  era: Era,
  races: ReadonlyArray<Race>,
  plan: Plan,
  show: (measure: Measure) => void
): Promise<void> => {
  const runners = peers.filter((peer) => peer.eras.includes(era)).map((peer) => new Runner(peer))
  try {
    for (const race of races) {
      const taking = runners.filter(({ peer }) => peer.name === "bare" || race.takesPart(peer))
      if (taking.length > 1) show(await raceOf(server, taking, era, race, plan))
    }
  } finally {
    await Promise.all(runners.map((runner) => runner.stop()))
  }
}

/** Whether it refuses a structured result that does not fit. */
const isChecking = (runner: Runner): Promise<boolean> =>
  runner.burst("lie", 1, 1).then(() => false, (error: Error) => !error.message.startsWith("report"))

const raceOf = async (
  server: Server,
  runners: ReadonlyArray<Runner>,
  era: Era,
  race: Race,
  plan: Plan
): Promise<Measure> => {
  const { inFlight, job, manner, name, title } = race
  const entries: Array<Entry> = runners.map((runner) => ({ runner, bursts: [], serverCpu: 0 }))
  const failures = new Map<Entry, Row>()
  const each = async (effort: (entry: Entry) => Promise<void>): Promise<void> => {
    for (const entry of entries) {
      if (failures.has(entry)) continue
      try {
        await effort(entry)
      } catch (error) {
        const { peer } = entry.runner
        if (peer.name === "bare") throw error
        failures.set(entry, failure(peer, error))
      }
    }
  }
  await each(async ({ runner }) => {
    await runner.connect(server.url(era, manner), era, true)
    if (job === "report" && await isChecking(runner) !== runner.peer.checks) {
      throw new Error(`it ${runner.peer.checks ? "does not check" : "checks"} structured results`)
    }
    await runner.burst(job, inFlight, plan.warmUp)
  })
  for (let round = 0; round < plan.rounds; round++) {
    await each(async (entry) => {
      // The first ones open the sockets that idled away.
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
