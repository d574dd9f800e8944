/**
 * What is alive in the process of the server: what the server knows of, and what the heap has.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import { queryObjects, writeHeapSnapshot } from "node:v8"

/** What the server knows of. Each of these is zero as long as nobody is there. */
export interface State {
  readonly sessions: number
  readonly peers: number
  readonly requests: number
  /** Questions to clients that are not answered. */
  readonly questions: number
  readonly streams: number
  /** The `subscriptions/listen` that are open. */
  readonly listens: number
  /** The resources that somebody has subscribed to. */
  readonly watched: number
  /** Characters in the event log. */
  readonly logged: number
  /** Sessions and streams that are open, by the server's metrics. */
  readonly measured: number
  /** Open connections, as Node counts them. */
  readonly sockets: number
}

/** What there is besides, after garbage was collected. */
export interface Census extends State {
  /** In bytes. */
  readonly heap: number
  /** Of the whole process, in bytes: for people to look at, since the system takes its time with it. */
  readonly resident: number
  /** The fibers that the heap has, so that one counts whether it runs, is parked, or was forgotten somewhere. */
  readonly fibers: number
  /** Those that keep the process alive, as Node counts them. */
  readonly timers: number
  /** The sessions that there have been, by the server's metrics. */
  readonly served: number
}

/** How many resources of a kind keep the process alive. */
export const active = (kind: string): number => process.getActiveResourcesInfo().filter((name) => name === kind).length

/** The sum of a metric over all of its series: a count, or how often something was observed. */
export const metric = (id: string): number =>
  Effect.runSync(Metric.snapshot)
    .filter((metric) => metric.id === id)
    .reduce((sum, { state }) => sum + Number("count" in state ? state.count : 0), 0)

/** The class of fibers, which nobody exports. */
const FiberClass = (() => {
  const fiber = Effect.runFork(Effect.never)
  Effect.runFork(Fiber.interrupt(fiber))
  return fiber.constructor
})()

/** How many fibers the heap has. */
export const fibers = (): number => queryObjects(FiberClass, { format: "count" })

const collect = (globalThis as { readonly gc?: () => void }).gc

/**
 * Collects until nothing more goes: what ended is often let go of a few turns of the event loop later. Gives the heap that is used,
 * in bytes.
 */
export const settle = async (): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    collect?.()
    const { heapUsed } = process.memoryUsage()
    if (round > 2 && least - heapUsed < 5_000) return heapUsed
    least = Math.min(least, heapUsed)
    await new Promise((later) => setTimeout(later, 20))
  }
  return least
}

/** Counts all of it; with the path of a file it writes a snapshot of the heap there as well. */
export const census = async (state: State, snapshot: string | undefined): Promise<Census> => {
  const heap = await settle()
  const resident = process.memoryUsage.rss()
  const found = {
    ...state,
    heap,
    resident,
    fibers: fibers(),
    timers: active("Timeout"),
    served: metric("mcp.server.session.duration")
  }
  if (snapshot !== undefined) writeHeapSnapshot(snapshot)
  return found
}
