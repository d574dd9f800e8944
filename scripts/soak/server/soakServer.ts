/**
 * The soak of the server: a warm-up, a baseline count, then slices of load. After each slice it waits until the
 * abandoned sessions have expired, and compares the counts with the baseline.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { withDeadline } from "../../deadline.ts"
import type { ResourceCounts, ServerState } from "../resourceCounts.ts"
import { growth, readHeapSnapshot } from "./heapSnapshot.ts"
import { Load } from "./load.ts"
import { ServerProcess } from "./serverProcess.ts"

export interface Plan {
  /**
   * The number of sessions, and of streams, before the baseline, so that it includes everything that is created once.
   */
  readonly warmUp: number
  /** The number of sessions, and of streams, after the baseline. */
  readonly goal: number
  /** The number of slices. Resources are counted after each. */
  readonly slices: number
  /** How many bytes larger than the baseline the heap may be at the end. It varies between collections. */
  readonly maxGrowth: number
  /** How many more objects of one class than in the baseline there may be at the end. */
  readonly maxObjects: number
  /** Milliseconds in which the warm-up, and each slice, must end. */
  readonly maxSliceMillis?: number
  /** Command line arguments for the server program. */
  readonly args?: ReadonlyArray<string>
}

/** Milliseconds in which each slice of the load must end by default. A slice takes less than a minute on an idle machine. */
const sliceMillis = 600_000

/** How long abandoned sessions and streams may take to expire, in milliseconds. */
const expiryTimeout = 30_000

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * Waits until the server reports no sessions or requests, or until the timeout: the next count then reports what
 * remains.
 */
const untilIdle = async (server: ServerProcess): Promise<void> => {
  const until = performance.now() + expiryTimeout
  const busy = (state: ServerState): boolean => Object.values(state).some((count) => count !== 0)
  while (busy(await server.state()) && performance.now() < until) await sleep(100)
}

/**
 * Counts when nothing more than before is left, or after the timeout. A timer that all requests share ends some seconds after
 * the last of them.
 */
const countAtRest = async (server: ServerProcess, before: ResourceCounts, file?: string): Promise<ResourceCounts> => {
  const until = performance.now() + expiryTimeout
  while (remaining(before, await server.count()).length > 0 && performance.now() < until) await sleep(500)
  return server.count(file)
}

/**
 * Classes of which the heap must not have a single object more at the end, by the code that has them: the endpoint and
 * its sessions consist of them.
 */
export const exactClasses = {
  skein: [
    "PeerImpl",
    "StreamableSession",
    "SseSession",
    "ServerSession",
    "Stream",
    "RequestContext",
    "StatelessResponse",
    "ListenSubscription"
  ],
  effect: ["FiberImpl"],
  node: ["Socket", "ServerResponse", "IncomingMessage", "Timeout", "Immediate"]
}

const exactObjects = new Set(Object.values(exactClasses).flat().map((name) => `object ${name}`))

const columns = [
  "heap MB",
  "resident MB",
  "fibers",
  "timers",
  "sockets",
  "sessions",
  "streams",
  "log",
  "  closed"
] as const

const cells = (counts: ResourceCounts): ReadonlyArray<string> => [
  (counts.heap / 1e6).toFixed(2),
  (counts.resident / 1e6).toFixed(0),
  ...[
    counts.fibers,
    counts.timers,
    counts.sockets,
    counts.sessions,
    counts.streams,
    counts.eventLogSize,
    counts.closedSessions
  ].map(String)
]

const row = (label: string, cells: ReadonlyArray<string>): string =>
  `| ${label.padEnd(34)} | ${cells.map((cell, at) => cell.padStart(columns[at]!.length)).join(" | ")} |`

/**
 * The growth of the heap in bytes per 1,000 sessions: the slope of the least squares line through `[sessions, heap]`.
 */
const trend = (points: ReadonlyArray<readonly [number, number]>): number => {
  const mean = (axis: 0 | 1): number => points.reduce((sum, point) => sum + point[axis], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const covariance = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return covariance / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0) * 1_000
}

const number = (value: number): string => Math.round(value).toLocaleString("en-US")

/** Runs the plan, prints a table, and returns the problems that it found. */
export const soakServer = async (plan: Plan, print: (line: string) => void): Promise<ReadonlyArray<string>> => {
  const folder = mkdtempSync(join(tmpdir(), "soak-"))
  const server = await ServerProcess.start(plan.args)
  try {
    const begin = performance.now()
    const load = new Load(server.port)
    const at = (): string =>
      `${number(load.sessions)} + ${number(load.streams)}, ${((performance.now() - begin) / 1_000).toFixed(0)} s`
    const files = [join(folder, "before.heapsnapshot"), join(folder, "after.heapsnapshot")] as const

    // The first count allocates memory that stays, and makes V8 drop memory that it allocated at the start.
    await server.count(files[0])
    const limit = {
      milliseconds: plan.maxSliceMillis ?? sliceMillis,
      describe: async () => `running scenarios:\n${load.describe()}\n${await server.describe()}`
    }
    await withDeadline("the warm-up", limit, async () => {
      await load.openManyConnections()
      await load.run(plan.warmUp, plan.warmUp)
    })
    await untilIdle(server)
    const before = await server.count(files[0])
    print(row("sessions + streams", columns))
    print(row(`${at()}: baseline`, cells(before)))

    const points: Array<readonly [number, number]> = []
    const problems: Array<string> = []
    let after = before
    for (let slice = 1; slice <= plan.slices; slice++) {
      const goal = plan.warmUp + plan.goal * slice / plan.slices
      await withDeadline(`slice ${slice} of the load`, limit, () => load.run(goal, goal))
      await untilIdle(server)
      after = await countAtRest(server, before, slice === plan.slices ? files[1] : undefined)
      points.push([load.sessions, after.heap])
      print(row(at(), cells(after)))
      problems.push(...remaining(before, after))
    }
    print("")
    for (const [scenario, count] of load.runs) print(`${number(count).padStart(8)}  ${scenario.name}`)
    print("")
    print(
      `The heap grew by ${number(after.heap - before.heap)} bytes in total; the trend is ${
        number(trend(points))
      } bytes per 1,000 sessions.`
    )

    const grown = growth(readHeapSnapshot(files[0]), readHeapSnapshot(files[1]))
    for (const [failure, count] of load.failures) problems.push(`${count} × ${failure}`)
    for (const [name, { count, size }] of grown) {
      if (count > (exactObjects.has(name) ? 0 : plan.maxObjects)) {
        problems.push(`heap: ${number(count)} more of ${name} (${number(size)} bytes)`)
      }
    }
    if (after.closedSessions < load.sessions) {
      problems.push(
        `the server has closed ${number(after.closedSessions)} sessions; at least ${number(load.sessions)} were opened`
      )
    }
    if (after.heap - before.heap > plan.maxGrowth) {
      problems.push(
        `heap: grew by ${number(after.heap - before.heap)} bytes; maxGrowth is ${
          number(plan.maxGrowth)
        }. Classes that grew:`
      )
    }
    if (problems.length > 0) {
      for (const [name, { count, size }] of grown.slice(0, 25)) {
        problems.push(`  ${number(count)} more of ${name} (${number(size)} bytes)`)
      }
    }
    const exit = await server.stop()
    if (exit !== 143) problems.push(`the server exited with ${exit} instead of 143 after SIGTERM`)
    return problems
  } finally {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The counts that are too high: fibers and timers are compared with the baseline, everything else must be zero. */
const remaining = (before: ResourceCounts, after: ResourceCounts): ReadonlyArray<string> => {
  const { heap: _heap, resident: _resident, closedSessions: _closedSessions, ...counts } = after
  return (Object.keys(counts) as Array<keyof typeof counts>).flatMap((name) => {
    const expected = name === "fibers" || name === "timers" ? before[name] : 0
    return counts[name] <= expected ? [] : [`${name}: ${counts[name]} instead of ${expected}`]
  })
}
