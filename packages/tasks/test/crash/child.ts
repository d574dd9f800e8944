/**
 * A process that is killed, from the side of its parent.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"

const flags = ["--conditions=@skein/source", "--disable-warning=ExperimentalWarning"]

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
    this.ended = once(this.process, "close").then(([code, signal]) => code ?? signal)
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
