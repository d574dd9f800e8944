/**
 * The client benchmark: calls and listings per second and what one costs, the time to a first result, and what an idle client holds.
 * All clients speak to one bare server. Rounds are interleaved, each client is compared with a bare one in the same round, and
 * nothing is asserted but that the answers are right.
 */
import { writeFileSync } from "node:fs"
import { pin } from "../lib/children.ts"
import { describe } from "../lib/machine.ts"
import { type Measure, render } from "../http/report.ts"
import { buildProblem } from "../stdio/peers.ts"
import type { Era } from "../stdio/wire.ts"
import * as calls from "./calls.ts"
import * as memory from "./memory.ts"
import { all, type Peer, prepare } from "./peers.ts"
import { Server } from "./processes.ts"
import * as starts from "./starts.ts"
import { many, ttlMs } from "./wire.ts"

interface Plan extends calls.Plan, starts.Plan, memory.Plan {}

const thorough: Plan = { rounds: 5, millis: 800, warmUp: 1_500, starts: 15, idle: 1_000 }
const quick: Plan = { rounds: 3, millis: 300, warmUp: 700, starts: 3, idle: 300 }

const everybody = () => true

const callRaces: ReadonlyArray<calls.Race> = (["greet", "report"] as const).flatMap((job) =>
  [false, true].flatMap((sse) =>
    [1, 16, 64].map((inFlight) => ({
      name: "calls",
      title: `tools/call, ${job === "greet" ? "a small result" : "a structured result that is checked"}, ${
        sse ? "SSE" : "JSON"
      }, ${inFlight} in flight`,
      job,
      inFlight,
      manner: { sse, many: false },
      takesPart: everybody
    }))
  )
)

const listRaces: ReadonlyArray<calls.Race> = [
  {
    name: "list",
    title: `tools/list of ${many} tools, asked of the server each time, 1 in flight`,
    job: "list",
    inFlight: 1,
    manner: { sse: false, many: true },
    takesPart: everybody
  },
  {
    name: "list",
    title: `tools/list of ${many} tools that may be kept for ${ttlMs / 1_000} s (the bare client asks each time)`,
    job: "cached",
    inFlight: 1,
    manner: { sse: false, many: true },
    takesPart: ({ caches }) => caches
  }
]

const parts = ["calls", "list", "start", "idle"] as const
type Part = (typeof parts)[number]

const usage = `usage: npm run bench -- client [--quick] [--only=${
  parts.join("|")
}] [--era=session|request] [--peers=bare,skein-node,…] [--source] [--json=file]`

/** What was asked for. */
interface Choice {
  plan: Plan
  only: Part | undefined
  eras: ReadonlyArray<Era>
  names: ReadonlyArray<string> | undefined
  source: boolean
  json: string | undefined
}

const read = (args: ReadonlyArray<string>): Choice => {
  const choice: Choice = {
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
    if (arg === "--quick") choice.plan = quick
    else if (arg === "--source") choice.source = true
    else if (part !== undefined) choice.only = part
    else if (arg === "--era=session" || arg === "--era=request") choice.eras = [value as Era]
    else if (arg.startsWith("--peers=")) choice.names = ["bare", ...value.split(",")]
    else if (arg.startsWith("--json=")) choice.json = value
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  const unknown = choice.names?.find((name) => all.every((peer) => peer.name !== name))
  if (unknown !== undefined) {
    throw new Error(`${unknown}: not a peer; there are ${all.map(({ name }) => name).join(", ")}`)
  }
  return choice
}

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const { eras, json, names, only, plan, source } = read(args)
  const problem = source ? undefined : buildProblem("NodeHttp.js", "client")
  const isSkein = ({ name }: Peer): boolean => name.startsWith("skein")
  const peers = all
    .filter((peer) => (names === undefined || names.includes(peer.name)) && !(isSkein(peer) && problem?.missing))
    .map((peer) => isSkein(peer) ? { ...peer, source } : peer)
  await prepare(peers)
  const machine = `${describe()} · npm run bench -- ${["client", ...args].join(" ")}`
  console.log(`${machine}\n`)
  if (problem !== undefined) console.log(`${problem.message} With --source it runs from its sources.\n`)
  if (source) console.log("Skein runs from its sources, not as it is installed.\n")

  const measures: Array<Measure> = []
  const show = (measure: Measure): void => {
    measures.push(measure)
    console.log(render(measure, "client") + "\n")
  }
  const wants = (part: Part): boolean => only === undefined || only === part
  // First, while nothing is pinned: a start is measured as it comes.
  if (wants("start")) {
    const server = await Server.start()
    for (const era of eras) show(await starts.measure(server, peers, era, plan))
    await server.stop()
  }
  if (!pin()) console.log("Client and server could not be kept on cores of their own: the ratios say little.\n")
  const server = await Server.start()
  const races = [...wants("calls") ? callRaces : [], ...wants("list") ? listRaces : []]
  for (const era of eras) await calls.run(server, peers, era, races, plan, show)
  if (wants("idle")) { for (const era of eras) show(await memory.measure(server, peers, era, plan)) }
  await server.stop()
  console.log(
    [
      "Rates, costs and times are medians over interleaved rounds. A ratio is the median of a client's figure over the bare client's in",
      "the same round (min–max). CPU is the whole client process. Memory is the growth per client after garbage was collected, in one",
      "run; a session's client holds its GET stream, but for effect/ai, which opens none. `kept` is a start with what an earlier one has",
      "found out about the server. In the session era Skein finds the era out, and the others know no other."
    ].join("\n")
  )
  if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, plan, measures }, undefined, 2) + "\n")
}
