/**
 * What an idle client costs that is connected: the heap and the resident memory of its process, after garbage was collected.
 */
import { type Era, revisionOf } from "../stdio/wire.ts"
import { failure, type Measure, type Row } from "../http/report.ts"
import type { Peer } from "./peers.ts"
import { Runner, type Server } from "./processes.ts"

export interface Plan {
  /** How many clients are idle. */
  readonly idle: number
}

/** How many come first and do not count, so that what is made once has been made: compiled code, above all. */
const before = 100

/** How long they are idle before they are measured, in milliseconds: sockets that nobody needs have been closed then. */
const rest = 6_000

const wait = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

const rowOf = async (server: Server, peer: Peer, era: Era, { idle }: Plan): Promise<Row> => {
  const runner = new Runner(peer)
  const measured = async () => {
    await wait(rest)
    return runner.memory()
  }
  try {
    await runner.open(before, server.url(era), era)
    const base = await measured()
    const begin = performance.now()
    await runner.open(idle, server.url(era), era)
    const seconds = (performance.now() - begin) / 1_000
    const held = await measured()
    const kilobytes = (of: (usage: NodeJS.MemoryUsage) => number) => (of(held) - of(base)) / idle / 1_000
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

/** Measures each client in one era. */
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
