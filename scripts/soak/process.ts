/**
 * The process of the server, as the load sees it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import type { Census, State } from "./census.ts"

/** How long it may take to answer, in milliseconds. */
const patience = 60_000

export class Server {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(more: ReadonlyArray<string> = []): Promise<Server> {
    const flags = [
      "--expose-gc",
      "--no-flush-bytecode",
      "--disable-warning=ExperimentalWarning",
      "--conditions=@skein/source"
    ]
    const args = [...flags, join(import.meta.dirname, "server.ts"), ...more]
    const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    // Whatever ends this process, the server does not outlive it: its end of the channel closes.
    return new Server(child, await heard<number>(child))
  }

  state(): Promise<State> {
    return this.#ask({})
  }

  /** Collects garbage, and counts what is left. With the path of a file it writes a snapshot of the heap there. */
  census(snapshot?: string): Promise<Census> {
    return this.#ask({ census: true, snapshot })
  }

  #ask<A>(question: object): Promise<A> {
    this.#child.send(question)
    return heard<A>(this.#child)
  }

  /** Asks it to end, and answers how it did. */
  async stop(): Promise<number | string> {
    this.#child.kill("SIGTERM")
    const [code, signal] = await once(this.#child, "exit")
    return code ?? signal
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}

const heard = <A>(child: ChildProcess): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => over(new Error(`The server says nothing for ${patience} ms`)), patience)
    const message = (found: unknown): void => {
      off()
      resolve(found as A)
    }
    const over = (error?: unknown): void => {
      off()
      reject(error instanceof Error ? error : new Error("The server has ended"))
    }
    const off = (): void => {
      clearTimeout(timer)
      child.off("message", message)
      child.off("exit", over)
      child.off("error", over)
    }
    child.once("message", message)
    child.once("exit", over)
    child.once("error", over)
  })
