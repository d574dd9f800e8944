/**
 * The start of programs with the package `skein`, from its packed file:
 *
 * - from spawn to the result of `initialize` on stdio, and the processor time of the process until then;
 * - the resident memory of the same server while it waits;
 * - from spawn to the first result of a client over HTTP.
 *
 * Rounds are interleaved, and each program is compared with the bare one in the same round. The first round fills the
 * file cache and Node's compile cache, and does not count.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { readdirSync, readFileSync } from "node:fs"
import { Server } from "../client/processes.ts"
import { startOnce } from "../client/startTimes.ts"
import { describe } from "../lib/machine.ts"
import { ratios, spread } from "../lib/statistics.ts"
import { markdown, ratio } from "../lib/table.ts"
import { Connection } from "../stdio/connection.ts"
import { prepare, type Program } from "./programs.ts"

/** How long a server may load further code before its memory is read, in milliseconds. */
const idleMillis = 500

/** The processor time of all threads of a process so far, in milliseconds; `NaN` where the system has no such file. */
const cpuOf = (pid: number): number => {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`)
    return tasks.reduce((sum, task) => {
      const [nanos] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "latin1").split(" ")
      return sum + Number(nanos) / 1e6
    }, 0)
  } catch {
    return Number.NaN
  }
}

/** The resident memory of a process, in MiB; `NaN` where the system has no such file. */
const residentOf = (pid: number): number => {
  try {
    return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) / 1024
  } catch {
    return Number.NaN
  }
}

interface Start {
  readonly wall: number
  readonly cpu: number
}

const startServer = async ({ command: [, file], label }: Program): Promise<Start> => {
  const begin = performance.now()
  const connection = new Connection(label, "session", file!)
  const wall = await connection.open() - begin
  const cpu = cpuOf(connection.child.pid!)
  await connection.close()
  return { wall, cpu }
}

const idleServer = async ({ command: [, file], label }: Program): Promise<number> => {
  const connection = new Connection(label, "session", file!)
  await connection.open()
  await sleep(idleMillis)
  const resident = residentOf(connection.child.pid!)
  await connection.close()
  return resident
}

/** Measures each program once in each round, in turns. Returns the samples of each. */
const interleaved = async <A>(
  programs: ReadonlyArray<Program>,
  rounds: number,
  measure: (program: Program) => Promise<A>
): Promise<ReadonlyArray<ReadonlyArray<A>>> => {
  const samples = programs.map((): Array<A> => [])
  for (let round = -1; round < rounds; round++) {
    // Every second round is in the reverse order.
    const order = [...programs.keys()]
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      const sample = await measure(programs[index]!)
      if (round >= 0) samples[index]!.push(sample)
    }
  }
  return samples
}

/** The columns of one figure: its ratio to that of the bare program, and its median. */
const columns = (samples: ReadonlyArray<ReadonlyArray<number>>, index: number): ReadonlyArray<string> => [
  ratio(ratios(samples[index]!, samples[0]!)),
  spread(samples[index]!).median.toFixed(1)
]

const usage = "usage: npm run bench -- start --package=<folder with node_modules/skein> [--quick]"

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let folder: string | undefined
  let rounds = 40
  for (const arg of args) {
    if (arg === "--quick") rounds = 8
    else if (arg.startsWith("--package=")) folder = arg.slice("--package=".length)
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  if (folder === undefined) throw new Error(usage)
  const { clients, servers } = await prepare(folder)
  console.log(`${describe()} · npm run bench -- ${["start", ...args].join(" ")}\n`)

  const starts = await interleaved(servers, rounds, startServer)
  const walls = starts.map((samples) => samples.map(({ wall }) => wall))
  const cpus = starts.map((samples) => samples.map(({ cpu }) => cpu))
  const resident = await interleaved(servers, Math.ceil(rounds / 4), idleServer)
  console.log("### A server on stdio: from spawn to the result of initialize, and its memory while it waits\n")
  console.log(markdown(
    ["server", "time / bare", "ms", "processor / bare", "ms", "memory / bare", "MiB"],
    servers.map(({ label }, at) => [label, ...columns(walls, at), ...columns(cpus, at), ...columns(resident, at)])
  ))

  const server = await Server.start()
  try {
    const url = server.url("session")
    const results = await interleaved(
      clients,
      rounds,
      async ({ command }) => (await startOnce([...command, url, "session"])).millis
    )
    console.log("\n### A client over HTTP: from spawn to its first result\n")
    console.log(markdown(
      ["client", "time / bare", "ms"],
      clients.map(({ label }, at) => [label, ...columns(results, at)])
    ))
  } finally {
    await server.stop()
  }
  console.log(
    "\nA ratio is the median over the rounds of a program's figure divided by that of the bare program (min–max)."
  )
}
