/**
 * The memory of an idle connected client: heap and resident memory of its process after a garbage collection.
 */
import { type Era, revisionOf } from "../stdio/messages.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import type { Peer } from "./peers.ts"
import { Runner, type Server } from "./processes.ts"

export interface Plan {
  /** The number of idle clients. */
  readonly idle: number
}

/** The number of clients before the baseline, so that it includes compiled code and other one-time allocations. */
const warmUpCount = 100

/** How long clients are idle before the measurement, in milliseconds, so that unused sockets have closed. */
const idleTime = 6_000

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const rowOf = async (server: Server, peer: Peer, era: Era, { idle }: Plan): Promise<Row> => {
  const runner = new Runner(peer)
  const measured = async () => {
    await sleep(idleTime)
    return runner.memory()
  }
  try {
    await runner.open(warmUpCount, server.url(era), era)
    const base = await measured()
    const begin = performance.now()
    await runner.open(idle, server.url(era), era)
    const seconds = (performance.now() - begin) / 1_000
    const withClients = await measured()
    const kilobytes = (of: (usage: NodeJS.MemoryUsage) => number) => (of(withClients) - of(base)) / idle / 1_000
    return {
      peer: peer.name,
      label: peer.label,
      figures: {
        heap: kilobytes((usage) => usage.heapUsed),
        external: kilobytes((usage) => usage.external),
        rss: kilobytes((usage) => usage.rss),
        rate: idle / seconds
      }
    }
  } catch (error) {
    return failure(peer, error)
  } finally {
    await runner.stop()
  }
}

/** Measures all clients in one era. */
export const measure = async (
  server: Server,
  peers: ReadonlyArray<Peer>,
  era: Era,
  plan: Plan
): Promise<Measure> => {
  const rows: Array<Row> = []
  for (const peer of peers.filter((peer) => peer.eras.includes(era))) rows.push(await rowOf(server, peer, era, plan))
  const idle = plan.idle.toLocaleString("en-US")
  return {
    name: "idle",
    era,
    title: `An idle client, of ${idle} in one process, ${revisionOf[era]}`,
    columns: [
      { key: "heap", title: "heap KB", unit: "decimal" },
      { key: "external", title: "external KB", unit: "decimal" },
      { key: "rss", title: "resident KB", unit: "decimal" },
      { key: "rate", title: "opened/s, a call each", unit: "count" }
    ],
    rows
  }
}
