/**
 * The soak of the client, in a process of its own: `program.ts [--scale 0.1] [--leak]`. After each workload the process
 * must have as many fibers, sockets, timers, listeners and child processes as before, and its heap must not have grown
 * by more than the bound.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { createServer } from "node:net"
import { parseArgs } from "node:util"
import { describeFibersOnSignal } from "../../fibers.ts"
import { collectGarbage, countActive, countFibers } from "../resourceCounts.ts"
import { type Workload, workloads } from "./workloads.ts"

const { values: { leak, scale } } = parseArgs({
  options: { scale: { type: "string", default: "1" }, leak: { type: "boolean", default: false } }
})

/** In bytes. Code is compiled during the warm-up, and the variation between collections is smaller. */
const maxGrowth = 1_500_000

/** How long resources may take to be released, in milliseconds: `fetch` keeps idle sockets for some seconds. */
const releaseTimeout = leak ? 1_000 : 15_000

const kinds = {
  sockets: "TCPSocketWrap",
  servers: "TCPServerWrap",
  pipes: "PipeWrap",
  processes: "ProcessWrap",
  timers: "Timeout"
} as const

type Counts = Readonly<Record<keyof typeof kinds | "fibers" | "listeners", number>>

const count = (): Counts => ({
  fibers: countFibers(),
  sockets: countActive(kinds.sockets),
  servers: countActive(kinds.servers),
  pipes: countActive(kinds.pipes),
  processes: countActive(kinds.processes),
  timers: countActive(kinds.timers),
  listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
})

const differences = (before: Counts, after: Counts): ReadonlyArray<string> =>
  (Object.keys(before) as Array<keyof Counts>).flatMap((name) =>
    after[name] === before[name] ? [] : [`${name}: ${after[name]} instead of ${before[name]}`]
  )

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits until the counts are as before or the time is over, and returns the differences that remain. */
const remaining = async (before: Counts): Promise<ReadonlyArray<string>> => {
  const until = performance.now() + releaseTimeout
  for (;;) {
    const heap = await collectGarbage()
    const found = differences(before, count())
    if (found.length === 0 || performance.now() > until) return heap < 0 ? [] : found
    await sleep(50)
  }
}

const run = (workload: Workload, times: number): Promise<ReadonlyArray<string>> =>
  Effect.runPromise(Effect.provide(workload.run(times), Logger.layer([])))

/** Leaks one resource of each kind. A test uses it to check that leaks are found. */
const leaked: Array<unknown> = []
const leakResources = (): void => {
  setTimeout(() => {}, 1_000_000)
  process.on("SIGUSR2", () => {})
  leaked.push(createServer().listen(0, "127.0.0.1"), Effect.runFork(Effect.never))
}

describeFibersOnSignal()
let failed = false
for (const workload of leak ? workloads.slice(0, 1) : workloads) {
  const factor = Number(scale)
  const times = Math.ceil((factor < 0.1 ? workload.timesWhenQuick ?? workload.times : workload.times) * factor)
  await run(workload, Math.min(times, workload.warmUp))
  const heapBefore = await collectGarbage()
  const before = count()
  const begin = performance.now()
  const problems = [...await run(workload, times)]
  if (leak) leakResources()
  problems.push(...await remaining(before))
  const grown = await collectGarbage() - heapBefore
  if (grown > maxGrowth) problems.push(`heap: grew by ${grown} bytes; the bound is ${maxGrowth}`)
  const seconds = ((performance.now() - begin) / 1_000).toFixed(1)
  const { fibers, listeners, timers } = count()
  console.log(
    `| ${String(times).padStart(6)} ${workload.name.padEnd(32)} | ${seconds.padStart(6)} s | ${fibers} fibers, ` +
      `${timers} timers, ${listeners} listeners | heap ${grown < 0 ? "" : "+"}${grown} bytes |`
  )
  for (const problem of problems) console.error(`  ${workload.name}: ${problem}`)
  failed ||= problems.length > 0
}
// A leaked resource could keep the process alive.
process.exit(failed ? 1 : 0)
