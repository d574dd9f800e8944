/**
 * The stdio benchmark of servers: `tools/call` with 32 calls in flight, and the time from spawn to the result of
 * `initialize`. Rounds are interleaved, and each peer is compared with the bare program in the same round. Only the
 * correctness of responses is checked.
 */
import { pin } from "../lib/childProcesses.ts"
import { describe } from "../lib/machine.ts"
import { ratios, type Spread, spread } from "../lib/statistics.ts"
import { count, markdown, ratio } from "../lib/table.ts"
import { type Burst, Connection } from "./connection.ts"
import { all, buildProblem, fileOf, type Form, isBuilt, type Peer, prepare } from "./peers.ts"
import { type Era, revisionOf } from "./messages.ts"

const inFlight = 32

interface Plan {
  /** The number of rounds, and the duration of a round in milliseconds. */
  readonly rounds: number
  readonly duration: number
  /** The duration of the warm-up in milliseconds. */
  readonly warmUp: number
  /** The number of measured starts. */
  readonly starts: number
}

const thorough: Plan = { rounds: 9, duration: 1_000, warmUp: 3_000, starts: 25 }
const quick: Plan = { rounds: 3, duration: 300, warmUp: 500, starts: 5 }

const throughput = async (peers: ReadonlyArray<Peer>, era: Era, plan: Plan): Promise<string> => {
  const participants = peers.filter((peer) => peer.eras.includes(era))
  const connections = participants.map((peer) =>
    new Connection(peer.label, era, fileOf(peer, "node_modules"), peer.args)
  )
  const bursts = participants.map((): Array<Burst> => [])
  for (const connection of connections) {
    await connection.open()
    await connection.burst(inFlight, plan.warmUp)
  }
  for (let round = 0; round < plan.rounds; round++) {
    for (const [index, connection] of connections.entries()) {
      bursts[index]!.push(await connection.burst(inFlight, plan.duration))
    }
  }
  for (const connection of connections) {
    if (!await connection.close()) {
      console.log(`${connection.name} did not exit after its stdin was closed, and was killed.`)
    }
  }
  const rates = bursts.map((rounds) => rounds.map(({ calls, wall }) => calls / wall * 1_000))
  const rows = participants.map((peer, index) => {
    const total = (of: (burst: Burst) => number | undefined): number =>
      bursts[index]!.reduce((sum, burst) => sum + (of(burst) ?? Number.NaN), 0)
    const wall = total((burst) => burst.wall)
    const share = (cpu: number) => Number.isNaN(cpu) ? "?" : `${Math.round(cpu / wall * 100)} %`
    const cost = total((burst) => burst.serverCpu) / total((burst) => burst.calls) * 1_000
    return [
      peer.label,
      ratio(ratios(rates[index]!, rates[0]!)),
      count(spread(rates[index]!).median),
      Number.isNaN(cost) ? "?" : cost.toFixed(1),
      share(total((burst) => burst.serverCpu)),
      share(total((burst) => burst.driverCpu))
    ]
  })
  const header = ["server", "throughput / bare", "calls/s", "server µs/call", "server busy", "driver busy"]
  return [
    `### tools/call over stdio, ${inFlight} in flight, ${revisionOf[era]}`,
    "",
    markdown(header, rows)
  ].join("\n")
}

const startOnce = async (peer: Peer, form: Form): Promise<number> => {
  const begin = performance.now()
  const connection = new Connection(peer.label, "session", fileOf(peer, form), peer.args)
  const answered = await connection.open()
  await connection.close()
  return answered - begin
}

const milliseconds = ({ median, min }: Spread): string => `${median.toFixed(0)} (${min.toFixed(0)})`

const startTimes = async (peers: ReadonlyArray<Peer>, plan: Plan): Promise<string> => {
  const forms = (["node_modules", "bundled", "skein build"] satisfies ReadonlyArray<Form>).filter(isBuilt)
  const variants = peers.flatMap((peer) => forms.map((form) => ({ peer, form, times: [] as Array<number> })))
  // The first round fills the file cache and does not count.
  for (let round = -1; round < plan.starts; round++) {
    for (const { form, peer, times } of variants) {
      const time = await startOnce(peer, form)
      if (round >= 0) times.push(time)
    }
  }
  const base = variants.find(({ form, peer }) => peer.name === "bare" && form === "node_modules")!.times
  const of = (peer: Peer, form: Form) =>
    variants.find((variant) => variant.peer === peer && variant.form === form)!.times
  const rows = peers.map((peer) => [
    peer.label,
    ...forms.flatMap((form) => [ratio(ratios(of(peer, form), base)), milliseconds(spread(of(peer, form)))])
  ])
  return [
    "### From spawn to the result of initialize",
    "",
    markdown(["server", ...forms.flatMap((form) => [`${form} / bare`, "ms (best)"])], rows)
  ].join("\n")
}

const usage = `usage: npm run bench -- stdio [--quick] [--only=calls|start] [--peers=bare,skein,…]`

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let plan = thorough
  let only: string | undefined
  let names: ReadonlyArray<string> | undefined
  for (const arg of args) {
    if (arg === "--quick") plan = quick
    else if (arg === "--only=calls" || arg === "--only=start") only = arg.slice("--only=".length)
    else if (arg.startsWith("--peers=")) names = ["bare", ...arg.slice("--peers=".length).split(",")]
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  const problem = buildProblem()
  const peers = all.filter((peer) =>
    (names === undefined || names.includes(peer.name)) && !(peer.name === "skein" && problem?.missing)
  )
  await prepare(peers)
  console.log(`${describe()} · npm run bench -- ${["stdio", ...args].join(" ")}\n`)
  if (problem !== undefined) console.log(`${problem.message}\n`)
  // Start times are measured before processes are pinned to cores.
  if (only !== "calls") console.log(await startTimes(peers.filter((peer) => peer.program === undefined), plan) + "\n")
  if (only !== "start") {
    if (!pin()) {
      console.log(
        "Driver and server cannot be pinned to different cores on this system: the ratios of calls are not reliable.\n"
      )
    }
    console.log(await throughput(peers, "session", plan) + "\n")
    console.log(await throughput(peers, "request", plan) + "\n")
  }
  console.log(
    `A ratio is the median over interleaved rounds of a peer's figure divided by that of bare Node in the same round (min–max).`
  )
}
