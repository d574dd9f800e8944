/**
 * The HTTP benchmark of servers: calls, listings and events per second, and the memory of idle sessions and streams.
 * Rounds are interleaved, and each peer is compared with bare `node:http` in the same round. Only the correctness of
 * responses is checked.
 */
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { pin } from "../lib/childProcesses.ts"
import { describe } from "../lib/machine.ts"
import { buildProblem } from "../stdio/peers.ts"
import type { Era } from "../stdio/messages.ts"
import * as memory from "./memory.ts"
import { all, prepare } from "./peers.ts"
import { type Measure, render } from "./report.ts"
import * as throughput from "./throughput.ts"
import { count, eventCount, list, toolCount } from "./requests.ts"
import { requireWrk } from "./wrk.ts"

interface Plan extends throughput.Plan, memory.Plan {}

const thorough: Plan = { rounds: 7, seconds: 1, warmUp: 3, few: 1_000, many: 10_000 }
const quick: Plan = { rounds: 2, seconds: 1, warmUp: 1, few: 500, many: 2_000 }

const workloads: ReadonlyArray<throughput.Workload> = [
  throughput.calls,
  {
    name: "list",
    title: `tools/list of ${toolCount} tools over HTTP, 32 connections`,
    unit: "lists",
    perResponse: 1,
    operation: list,
    connections: 32,
    streams: false
  },
  {
    name: "events",
    title: `Progress over SSE, ${eventCount} events per call, 8 streams`,
    unit: "events",
    perResponse: eventCount,
    operation: count,
    connections: 8,
    streams: true
  }
]

const parts: ReadonlyArray<string> = [...workloads.map(({ name }) => name), "idle"]
const usage = `usage: npm run bench -- http [--quick] [--only=${
  parts.join("|")
}] [--peers=bare,skein,…] [--source] [--json=file]`

/** The limit of open files and sockets of a process. Node raises its soft limit to the hard limit at its start. */
const maxOpenFiles = (): number => {
  const limit = Number(spawnSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }).stdout)
  return Number.isNaN(limit) ? Number.POSITIVE_INFINITY : limit
}

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let plan = thorough
  let only: string | undefined
  let names: ReadonlyArray<string> | undefined
  let json: string | undefined
  let source = false
  for (const arg of args) {
    const value = arg.slice(arg.indexOf("=") + 1)
    if (arg === "--quick") plan = quick
    else if (arg === "--source") source = true
    else if (arg.startsWith("--only=") && parts.includes(value)) only = value
    else if (arg.startsWith("--peers=")) names = ["bare", ...value.split(",")]
    else if (arg.startsWith("--json=")) json = value
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  const unknown = names?.find((name) => all.every((peer) => peer.name !== name))
  if (unknown !== undefined) {
    throw new Error(`${unknown}: not a peer; there are ${all.map(({ name }) => name).join(", ")}`)
  }
  requireWrk()
  const problem = source ? undefined : buildProblem("NodeHttp.js")
  const peers = all
    .filter((peer) =>
      (names === undefined || names.includes(peer.name)) && !(problem?.missing && peer.name.startsWith("skein"))
    )
    .map((peer) => peer.name === "skein" ? { ...peer, source } : peer)
  await prepare(peers)
  const machine = `${describe()} · npm run bench -- ${["http", ...args].join(" ")}`
  console.log(`${machine}\n`)
  if (problem !== undefined) console.log(`${problem.message} Or use --source to run from the sources.\n`)
  if (source) console.log("Skein runs from its sources, not from its built packages.\n")
  if (!pin()) {
    console.log("Load and server cannot be pinned to different cores on this system: the ratios are not reliable.\n")
  }
  // Each process has a socket per stream, and some other files.
  const many = Math.min(plan.many, maxOpenFiles() - memory.warmUpCount - 200)
  if (many < plan.many) {
    console.log(`Only ${many} streams: the limit of open files (\`ulimit -Hn\`) is too low for ${plan.many}.\n`)
  }

  const measures: Array<Measure> = []
  const show = (measure: Measure): void => {
    measures.push(measure)
    console.log(render(measure) + "\n")
  }
  const eras: ReadonlyArray<Era> = ["session", "request"]
  for (const workload of workloads) {
    if (only !== undefined && only !== workload.name) continue
    for (const era of eras) show(await throughput.measure(peers, era, workload, plan))
  }
  if (only === undefined || only === "idle") {
    for (const measure of await memory.measureSessions(peers, { few: plan.few, many })) show(measure)
    show(await memory.measureListenStreams(peers, { few: plan.few, many }))
  }
  console.log(
    [
      "Rates and latencies are medians over interleaved rounds. A ratio is the median of a peer's rate divided by the rate of bare",
      "node:http in the same round (min–max). Memory is the growth per session or stream after a garbage collection, in one run."
    ].join("\n")
  )
  if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, plan, measures }, undefined, 2) + "\n")
}
