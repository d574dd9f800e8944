/**
 * A process that is killed, from the side of its parent.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { requestFibers } from "../../../../scripts/fibers.ts"

const flags = ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning"]

/** The processes that have not ended. */
const running = new Set<Child>()

export class Child {
  readonly process: ChildProcess
  /** How it ended: its exit code, or the signal. */
  readonly ended: Promise<number | string>
  #err = ""

  /** `program` is a file in this folder. */
  constructor(program: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) {
    this.process = fork(join(import.meta.dirname, program), args, {
      execArgv: flags,
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "pipe", "ipc"]
    })
    this.process.stderr!.setEncoding("utf8").on("data", (text: string) => void (this.#err += text))
    running.add(this)
    this.ended = once(this.process, "close").then(([code, signal]) => {
      running.delete(this)
      return code ?? signal
    })
  }

  /** The stderr output of the process. */
  get err(): string {
    return this.#err
  }

  /** Its first message; `undefined` if it ends without one. */
  async message<A>(): Promise<A | undefined> {
    const message = once(this.process, "message").then(([message]) => message as A)
    return Promise.race([message, this.ended.then(() => undefined)])
  }

  kill(signal: NodeJS.Signals): Promise<number | string> {
    this.process.kill(signal)
    return this.ended
  }
}

/** The most characters of the stderr output of a process in a description. */
const maxOutput = 30_000

/**
 * Describes all processes that have not ended: their stderr output, at whose end they write their fibers
 * (`describeFibersOnSignal`).
 */
export const describeChildren = async (): Promise<string> => {
  const children = [...running]
  await Promise.all(children.map((child) => requestFibers(child.process, () => child.err)))
  return children.map(({ err, process: { exitCode, pid, signalCode, spawnargs } }) => {
    const state = exitCode ?? signalCode ?? "running"
    return `process ${pid} (${state}): ${spawnargs.slice(1).join(" ")}\n${err.slice(-maxOutput)}`
  }).join("\n")
}

/** Kills all processes that have not ended. */
export const killChildren = (): void => {
  for (const child of running) child.process.kill("SIGKILL")
}
