/**
 * A whole run: warm up, take the baseline, then slice by slice; after each, wait until all that was left behind is over, and count.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Census, State } from "./census.ts"
import { Load } from "./load.ts"
import { Server } from "./process.ts"
import { growth, read } from "./snapshot.ts"

export interface Plan {
  /** Sessions, and streams, that come before the baseline: what is made once has been made then. */
  readonly warmUp: number
  /** Sessions, and streams, that come after it. */
  readonly goal: number
  /** How often there is a census on the way. */
  readonly slices: number
  /** How many bytes the heap may be larger in the end: it breathes. */
  readonly maxGrowth: number
  /** How many objects of one kind there may be more in the end. */
  readonly maxObjects: number
  /** Arguments for the program of the server. */
  readonly args?: ReadonlyArray<string>
}

/** How long what was left behind may take to be over, in milliseconds. */
const patience = 30_000

const wait = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

/** Waits until nobody is there any more, as far as the server knows. If somebody stays, the census will tell. */
const quiet = async (server: Server): Promise<void> => {
  const until = performance.now() + patience
  const busy = (state: State): boolean => Object.values(state).some((count) => count !== 0)
  while (busy(await server.state()) && performance.now() < until) await wait(100)
}

/** What the endpoint and its sessions are made of: of these there is not one more in the end. */
const exact =
  /^object (FiberImpl|Peer|HttpSession|LegacySession|ServerSession|Stream|RequestContext|Turn|Listen|Socket|ServerResponse|IncomingMessage|Timeout|Immediate)$/

const columns = [
  "heap MB",
  "resident MB",
  "fibers",
  "timers",
  "sockets",
  "sessions",
  "streams",
  "log",
  "  served"
] as const

const figures = (census: Census): ReadonlyArray<string> => [
  (census.heap / 1e6).toFixed(2),
  (census.resident / 1e6).toFixed(0),
  ...[
    census.fibers,
    census.timers,
    census.sockets,
    census.sessions,
    census.streams,
    census.logged,
    census.served
  ].map(String)
]

const row = (label: string, cells: ReadonlyArray<string>): string =>
  `| ${label.padEnd(34)} | ${cells.map((cell, at) => cell.padStart(columns[at]!.length)).join(" | ")} |`

/** Bytes per 1,000 of those who came: the slope of the line that fits best. */
const trend = (points: ReadonlyArray<readonly [number, number]>): number => {
  const mean = (of: 0 | 1): number => points.reduce((sum, point) => sum + point[of], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const covariance = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return covariance / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0) * 1_000
}

const number = (value: number): string => Math.round(value).toLocaleString("en-US")

/** Runs it, prints a table, and answers what is wrong. */
export const soak = async (plan: Plan, print: (line: string) => void): Promise<ReadonlyArray<string>> => {
  const folder = mkdtempSync(join(tmpdir(), "soak-"))
  const server = await Server.start(plan.args)
  try {
    const begin = performance.now()
    const load = new Load(server.port)
    const at = (): string =>
      `${number(load.sessions)} + ${number(load.streams)}, ${((performance.now() - begin) / 1_000).toFixed(0)} s`
    const files = [join(folder, "before.heapsnapshot"), join(folder, "after.heapsnapshot")] as const

    // The first one makes something for good as well, and has V8 throw away what it will not need again.
    await server.census(files[0])
    await load.crowd()
    await load.run(plan.warmUp, plan.warmUp)
    await quiet(server)
    const before = await server.census(files[0])
    print(row("sessions + streams", columns))
    print(row(`${at()}: baseline`, figures(before)))

    const points: Array<readonly [number, number]> = []
    const problems: Array<string> = []
    let after = before
    for (let slice = 1; slice <= plan.slices; slice++) {
      const goal = plan.warmUp + plan.goal * slice / plan.slices
      await load.run(goal, goal)
      await quiet(server)
      after = await server.census(slice === plan.slices ? files[1] : undefined)
      points.push([load.sessions, after.heap])
      print(row(at(), figures(after)))
      problems.push(...left(before, after))
    }
    print("")
    for (const [way, count] of load.visits) print(`${number(count).padStart(8)}  ${way.name}`)
    print("")
    print(
      `The heap grew by ${number(after.heap - before.heap)} bytes in all, and by ${
        number(trend(points))
      } per 1,000 sessions on the way.`
    )

    const grown = growth(read(files[0]), read(files[1]))
    for (const [what, count] of load.wrong) problems.push(`${count} × ${what}`)
    for (const [name, { count, size }] of grown) {
      if (count > (exact.test(name) ? 0 : plan.maxObjects)) {
        problems.push(`${number(count)} more of: ${name} (${number(size)} bytes)`)
      }
    }
    if (after.served < load.sessions) problems.push(`The server has seen ${number(after.served)} sessions only`)
    if (after.heap - before.heap > plan.maxGrowth) problems.push("The heap has grown. What there is more of:")
    if (problems.length > 0) {
      for (const [name, { count, size }] of grown.slice(0, 25)) {
        problems.push(`  ${number(count)} ${name}, ${number(size)} bytes`)
      }
    }
    const exit = await server.stop()
    if (exit !== 143) problems.push(`The server did not end as it should, but with ${exit}`)
    return problems
  } finally {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What is there that was not there before. Of what the server knows of there is nothing at all. */
const left = (before: Census, after: Census): ReadonlyArray<string> => {
  const { heap: _heap, resident: _resident, served: _served, ...counts } = after
  return (Object.keys(counts) as Array<keyof typeof counts>).flatMap((what) => {
    const wanted = what === "fibers" || what === "timers" ? before[what] : 0
    return counts[what] <= wanted ? [] : [`${what}: ${counts[what]}, and not ${wanted}`]
  })
}
