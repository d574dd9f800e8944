/**
 * The soak of the client, a process of its own: `host.ts [--scale 0.1] [--leak]`. After each kind of visit there must be as many
 * fibers, sockets, timers, listeners and child processes as before, and the heap must not have grown by more than the bound.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { createServer } from "node:net"
import { parseArgs } from "node:util"
import { active, fibers, settle } from "../census.ts"
import { type Visits, visits } from "./visits.ts"

const { values: { leak, scale } } = parseArgs({
  options: { scale: { type: "string", default: "1" }, leak: { type: "boolean", default: false } }
})

/** In bytes: what is compiled and kept once comes in the warm-up, and what breathes is less. */
const maxGrowth = 1_500_000

/** How long what was left behind may take to be over, in milliseconds: the sockets of `fetch` wait for others a while. */
const patience = leak ? 1_000 : 15_000

const kinds = {
  sockets: "TCPSocketWrap",
  servers: "TCPServerWrap",
  pipes: "PipeWrap",
  processes: "ProcessWrap",
  timers: "Timeout"
} as const

type Counts = Readonly<Record<keyof typeof kinds | "fibers" | "listeners", number>>

const count = (): Counts => ({
  fibers: fibers(),
  sockets: active(kinds.sockets),
  servers: active(kinds.servers),
  pipes: active(kinds.pipes),
  processes: active(kinds.processes),
  timers: active(kinds.timers),
  listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
})

const different = (before: Counts, after: Counts): ReadonlyArray<string> =>
  (Object.keys(before) as Array<keyof Counts>).flatMap((what) =>
    after[what] === before[what] ? [] : [`${what}: ${after[what]}, and not ${before[what]}`]
  )

const wait = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

/** What is different in the end, once it is the same or has had its time. */
const left = async (before: Counts): Promise<ReadonlyArray<string>> => {
  const until = performance.now() + patience
  for (;;) {
    const heap = await settle()
    const found = different(before, count())
    if (found.length === 0 || performance.now() > until) return heap < 0 ? [] : found
    await wait(50)
  }
}

const run = (visits: Visits, times: number): Promise<ReadonlyArray<string>> =>
  Effect.runPromise(Effect.provide(visits.run(times), Logger.layer([])))

/** For the test that it is found. */
const forgotten: Array<unknown> = []
const forget = (): void => {
  setTimeout(() => {}, 1_000_000)
  process.on("SIGUSR2", () => {})
  forgotten.push(createServer().listen(0, "127.0.0.1"), Effect.runFork(Effect.never))
}

let failed = false
for (const each of leak ? visits.slice(0, 1) : visits) {
  const part = Number(scale)
  const times = Math.ceil((part < 0.1 ? each.few ?? each.times : each.times) * part)
  await run(each, Math.min(times, each.warmUp))
  const heapBefore = await settle()
  const before = count()
  const begin = performance.now()
  const problems = [...await run(each, times)]
  if (leak) forget()
  problems.push(...await left(before))
  const grown = await settle() - heapBefore
  if (grown > maxGrowth) problems.push(`The heap has grown by ${grown} bytes`)
  const seconds = ((performance.now() - begin) / 1_000).toFixed(1)
  const { fibers, listeners, timers } = count()
  console.log(
    `| ${String(times).padStart(6)} ${each.name.padEnd(32)} | ${seconds.padStart(6)} s | ${fibers} fibers, ` +
      `${timers} timers, ${listeners} listeners | heap ${grown < 0 ? "" : "+"}${grown} bytes |`
  )
  for (const problem of problems) console.error(`  ${each.name}: ${problem}`)
  failed ||= problems.length > 0
}
// Whatever is left could keep the process alive.
process.exit(failed ? 1 : 0)
