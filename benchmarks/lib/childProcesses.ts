/**
 * The child processes of a benchmark. None of them outlives the benchmark: not when it ends, fails, or is stopped with
 * Ctrl-C.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn, type SpawnOptions, spawnSync } from "node:child_process"
import { once } from "node:events"
import { cpus } from "node:os"
import type { Readable, Writable } from "node:stream"

export type Child = ChildProcessByStdio<Writable, Readable, null>

const children = new Set<ChildProcess>()

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]] as const) {
  process.on(signal, () => process.exit(code))
}

/**
 * The environment without the variables that change how Node starts or runs, so that all peers start under the same
 * conditions.
 */
const environment = (() => {
  const { NODE_COMPILE_CACHE: _1, NODE_OPTIONS: _2, NODE_V8_COVERAGE: _3, ...rest } = process.env
  return rest
})()

let pinned = false

/**
 * Pins this process to the first core and all later servers to the second. Otherwise the two sometimes share a core,
 * which halves the figure of a peer. Returns whether the system supports it (Linux with `taskset`).
 */
export const pin = (): boolean => {
  if (cpus().length < 2) return false
  pinned = spawnSync("taskset", ["-a", "-p", "-c", "0", String(process.pid)]).status === 0
  return pinned
}

/**
 * Starts a command on the core of the servers, or on the core of this process, which generates the load.
 */
export const launch = (
  core: "server" | "load",
  command: ReadonlyArray<string>,
  options: SpawnOptions
): ChildProcess => {
  const [file, ...args] = [...(pinned && core === "server" ? ["taskset", "-c", "1"] : []), ...command]
  const child = spawn(file!, args, { ...options, env: environment })
  children.add(child)
  child.once("exit", () => children.delete(child))
  return child
}

/** Starts a program with the current Node. It inherits stderr. */
export const start = (file: string, args: ReadonlyArray<string> = []): Child => {
  const child = launch("server", [process.execPath, file, ...args], { stdio: ["pipe", "pipe", "inherit"] }) as Child
  // The exit of a child is detected on its stdout. A failed write must not end the benchmark before that.
  child.stdin.on("error", () => {})
  return child
}

/** Kills a child and waits for its exit. */
export const kill = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, "exit")
  child.kill("SIGKILL")
  await exited
}

/**
 * Closes the child's stdin and waits for its exit. Kills it after a second. Returns whether it exited without being
 * killed.
 */
export const stop = async (child: Child): Promise<boolean> => {
  if (child.exitCode !== null || child.signalCode !== null) return child.signalCode === null
  const exited = once(child, "exit")
  const timer = setTimeout(() => child.kill("SIGKILL"), 1_000)
  child.stdin.end()
  await exited
  clearTimeout(timer)
  return child.signalCode === null
}
