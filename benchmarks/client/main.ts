/**
 * The benchmark of clients: calls and listings per second and their processor time, the time to a first result, and the
 * memory of an idle client. All clients use the same bare server. Rounds are interleaved, and each client is compared
 * with a bare one in the same round. Only the correctness of responses is checked.
 */
import { writeFileSync } from "node:fs"
import { pin } from "../lib/childProcesses.ts"
import { describe } from "../lib/machine.ts"
import { type Measure, render } from "../http/report.ts"
import { buildProblem } from "../stdio/peers.ts"
import type { Era } from "../stdio/messages.ts"
import * as calls from "./calls.ts"
import * as memory from "./memory.ts"
import { all, type Peer, prepare } from "./peers.ts"
import { Server } from "./processes.ts"
import * as startTimes from "./startTimes.ts"
import { longListSize, ttlMs } from "./serverData.ts"

interface Plan extends calls.Plan, startTimes.Plan, memory.Plan {}

const thorough: Plan = { rounds: 5, millis: 800, warmUp: 1_500, starts: 15, idle: 1_000 }
const quick: Plan = { rounds: 3, millis: 300, warmUp: 700, starts: 3, idle: 300 }

const allPeers = () => true

const callWorkloads: ReadonlyArray<calls.Workload> = (["greet", "report"] as const).flatMap((job) =>
  [false, true].flatMap((sse) =>
    [1, 16, 64].map((inFlight) => ({
      name: "calls",
      title: `tools/call, ${job === "greet" ? "a small result" : "a structured result that is validated"}, ${
        sse ? "SSE" : "JSON"
      }, ${inFlight} in flight`,
      job,
      inFlight,
      mode: { sse, long: false },
      includes: allPeers
    }))
  )
)

const listWorkloads: ReadonlyArray<calls.Workload> = [
  {
    name: "list",
    title: `tools/list of ${longListSize} tools, requested from the server each time, 1 in flight`,
    job: "list",
    inFlight: 1,
    mode: { sse: false, long: true },
    includes: allPeers
  },
  {
    name: "list",
    title: `tools/list of ${longListSize} tools that may be cached for ${
      ttlMs / 1_000
    } s (the bare client requests them each time)`,
    job: "cached",
    inFlight: 1,
    mode: { sse: false, long: true },
    includes: ({ caches }) => caches
  }
]

const parts = ["calls", "list", "start", "idle"] as const
type Part = (typeof parts)[number]

const usage = `usage: npm run bench -- client [--quick] [--only=${
  parts.join("|")
}] [--era=session|request] [--peers=bare,skein-node,…] [--source] [--json=file]`

/** The parsed arguments. */
interface Options {
  plan: Plan
  only: Part | undefined
  eras: ReadonlyArray<Era>
  names: ReadonlyArray<string> | undefined
  source: boolean
  json: string | undefined
}

const parseOptions = (args: ReadonlyArray<string>): Options => {
  const options: Options = {
    plan: thorough,
    only: undefined,
    eras: ["session", "request"],
    names: undefined,
    source: false,
    json: undefined
  }
  for (const arg of args) {
    const value = arg.slice(arg.indexOf("=") + 1)
    const part = parts.find((part) => arg === `--only=${part}`)
    if (arg === "--quick") options.plan = quick
    else if (arg === "--source") options.source = true
    else if (part !== undefined) options.only = part
    else if (arg === "--era=session" || arg === "--era=request") options.eras = [value as Era]
    else if (arg.startsWith("--peers=")) options.names = ["bare", ...value.split(",")]
    else if (arg.startsWith("--json=")) options.json = value
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  const unknown = options.names?.find((name) => all.every((peer) => peer.name !== name))
  if (unknown !== undefined) {
    throw new Error(`${unknown}: not a peer; there are ${all.map(({ name }) => name).join(", ")}`)
  }
  return options
}

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const { eras, json, names, only, plan, source } = parseOptions(args)
  const problem = source ? undefined : buildProblem("NodeHttp.js", "client")
  const isSkein = ({ name }: Peer): boolean => name.startsWith("skein")
  const peers = all
    .filter((peer) => (names === undefined || names.includes(peer.name)) && !(isSkein(peer) && problem?.missing))
    .map((peer) => isSkein(peer) ? { ...peer, source } : peer)
  await prepare(peers)
  const machine = `${describe()} · npm run bench -- ${["client", ...args].join(" ")}`
  console.log(`${machine}\n`)
  if (problem !== undefined) console.log(`${problem.message} Or use --source to run from the sources.\n`)
  if (source) console.log("Skein runs from its sources, not from its built packages.\n")

  const measures: Array<Measure> = []
  const show = (measure: Measure): void => {
    measures.push(measure)
    console.log(render(measure, "client") + "\n")
  }
  const isSelected = (part: Part): boolean => only === undefined || only === part
  // Start times are measured before processes are pinned to cores.
  if (isSelected("start")) {
    const server = await Server.start()
    for (const era of eras) show(await startTimes.measure(server, peers, era, plan))
    await server.stop()
  }
  if (!pin()) {
    console.log("Client and server cannot be pinned to different cores on this system: the ratios are not reliable.\n")
  }
  const server = await Server.start()
  const workloads = [...isSelected("calls") ? callWorkloads : [], ...isSelected("list") ? listWorkloads : []]
  for (const era of eras) await calls.run(server, peers, era, workloads, plan, show)
  if (isSelected("idle")) { for (const era of eras) show(await memory.measure(server, peers, era, plan)) }
  await server.stop()
  console.log(
    [
      "Rates, costs and times are medians over interleaved rounds. A ratio is the median of a client's figure divided by that of the bare",
      "client in the same round (min–max). CPU is the processor time of the client process. Memory is the growth per client after a garbage",
      "collection, in one run; clients with a session hold a GET stream, except effect/ai, which opens none. `kept` is a start with the",
      "detection result of an earlier start. In 2025-11-25 Skein detects the revision; the other clients do not try 2026-07-28."
    ].join("\n")
  )
  if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, plan, measures }, undefined, 2) + "\n")
}
