/**
 * Counts the resources of the current process: fibers, sockets, timers, heap, and the state of a server under test.
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { queryObjects, writeHeapSnapshot } from "node:v8"
import { FiberClass } from "../fibers.ts"

/** The state of the server, as it reports it. Each number is zero while no client is connected. */
export interface ServerState {
  readonly sessions: number
  readonly peers: number
  readonly requests: number
  /** Requests to clients that have no response yet. */
  readonly outboundRequests: number
  readonly streams: number
  /** Open `subscriptions/listen` requests. */
  readonly listens: number
  /** Resources with at least one subscription. */
  readonly subscribedResources: number
  /** Characters in the event log. */
  readonly eventLogSize: number
  /** Open sessions and streams according to the server's metrics. */
  readonly openByMetrics: number
  /** Open connections according to Node. */
  readonly sockets: number
}

/** The state of the server and of its process, after a garbage collection. */
export interface ResourceCounts extends ServerState {
  /** In bytes. */
  readonly heap: number
  /** Resident memory of the whole process in bytes. It is printed but not checked: the system reclaims it late. */
  readonly resident: number
  /**
   * Fibers on the heap, whether they run or are suspended. A leaked fiber is found here even if nothing else refers to
   * it.
   */
  readonly fibers: number
  /** Timers that keep the process alive, according to Node. */
  readonly timers: number
  /** Sessions closed since the start, according to the server's metrics. */
  readonly closedSessions: number
}

/** Counts the resources of one kind that keep the process alive. */
export const countActive = (kind: string): number =>
  process.getActiveResourcesInfo().filter((name) => name === kind).length

/** Adds up a metric over all of its series: the value of a gauge, or the number of observations of a histogram. */
export const sumMetric = (id: string): number =>
  Effect.runSync(Metric.snapshot)
    .filter((metric) => metric.id === id)
    .reduce((sum, { state }) => sum + Number("count" in state ? state.count : 0), 0)

/** Counts the fibers on the heap. */
export const countFibers = (): number => queryObjects(FiberClass, { format: "count" })

const collect = (globalThis as { readonly gc?: () => void }).gc

/**
 * Collects garbage until the heap stops shrinking, and returns its size in bytes. One collection is not enough: a
 * closed object is often released a few turns of the event loop later.
 */
export const collectGarbage = async (): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    collect?.()
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && least - heapUsed < 5_000) return heapUsed
    least = Math.min(least, heapUsed)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return least
}

/** Collects garbage and counts everything. Also writes a heap snapshot if `snapshot` is the path of a file. */
export const countResources = async (state: ServerState, snapshot: string | undefined): Promise<ResourceCounts> => {
  const heap = await collectGarbage()
  const resident = process.memoryUsage.rss()
  const counts = {
    ...state,
    heap,
    resident,
    fibers: countFibers(),
    timers: countActive("Timeout"),
    closedSessions: sumMetric("mcp.server.session.duration")
  }
  if (snapshot !== undefined) writeHeapSnapshot(snapshot)
  return counts
}
