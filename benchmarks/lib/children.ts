/**
 * The processes that a benchmark starts. None outlives it: neither when it ends, nor when it fails, nor on Ctrl-C.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn, type SpawnOptions, spawnSync } from "node:child_process"
import { once } from "node:events"
import { availableParallelism } from "node:os"
import type { Readable, Writable } from "node:stream"

export type Child = ChildProcessByStdio<Writable, Readable, null>

const children = new Set<ChildProcess>()

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]] as const) {
  process.on(signal, () => process.exit(code))
}

/** What could change how a child starts or runs is not handed down, so that each peer starts alike. */
const environment = (() => {
  const { NODE_COMPILE_CACHE: _1, NODE_OPTIONS: _2, NODE_V8_COVERAGE: _3, ...rest } = process.env
  return rest
})()

let pinned = false

/**
 * Keeps this process on the first core and, from here on, each server on the second, so that the two never take turns on one:
 * where the system lets them, they sometimes do, and halve a peer's figure. Answers whether the system could (Linux, `taskset`).
 */
export const pin = (): boolean => {
  if (availableParallelism() < 2) return false
  pinned = spawnSync("taskset", ["-a", "-p", "-c", "0", String(process.pid)]).status === 0
  return pinned
}

/**
 * Starts a command on the core of the servers, or on this process's own, from where the load comes. Options that are not given
 * are Node's.
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

/** Starts a program on the Node that runs this one. Its stderr goes where ours goes. */
export const start = (file: string, args: ReadonlyArray<string> = []): Child => {
  const child = launch("server", [process.execPath, file, ...args], { stdio: ["pipe", "pipe", "inherit"] }) as Child
  // A child that died is noticed at its stdout; a write to it must not bring the benchmark down first.
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

/** Closes the child's stdin and waits for its exit; after a second it is killed. Answers whether it went by itself. */
export const stop = async (child: Child): Promise<boolean> => {
  if (child.exitCode !== null || child.signalCode !== null) return child.signalCode === null
  const exited = once(child, "exit")
  const timer = setTimeout(() => child.kill("SIGKILL"), 1_000)
  child.stdin.end()
  await exited
  clearTimeout(timer)
  return child.signalCode === null
}
