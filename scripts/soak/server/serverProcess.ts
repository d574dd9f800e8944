/**
 * Starts the server under test as a child process, and asks it for its counts.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import type { ResourceCounts, ServerState } from "../resourceCounts.ts"

/** How long the process may take to reply, and to stop, in milliseconds. */
const replyTimeout = 60_000

/** Milliseconds in which the process writes its fibers. */
const describeMillis = 5000

export class ServerProcess {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(more: ReadonlyArray<string> = []): Promise<ServerProcess> {
    const flags = [
      "--expose-gc",
      "--no-flush-bytecode",
      "--disable-warning=ExperimentalWarning",
      "--conditions=@skein/source"
    ]
    const args = [...flags, join(import.meta.dirname, "program.ts"), ...more]
    // The server does not outlive this process: when its IPC channel closes, it exits.
    const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
    return new ServerProcess(child, await nextMessage<number>(child))
  }

  state(): Promise<ServerState> {
    return this.#ask({})
  }

  /**
   * Collects garbage in the server and counts its resources. Also writes a heap snapshot if `snapshot` is the path of a
   * file.
   */
  count(snapshot?: string): Promise<ResourceCounts> {
    return this.#ask({ count: true, snapshot })
  }

  #ask<A>(request: object): Promise<A> {
    this.#child.send(request)
    return nextMessage<A>(this.#child)
  }

  /** Describes the state of the server. The server writes its fibers to stderr. */
  async describe(): Promise<string> {
    this.#child.kill("SIGUSR2")
    await sleep(describeMillis)
    return `the state of the server: ${JSON.stringify(await this.state())}`
  }

  /** Sends SIGTERM, and returns the exit code or signal: SIGKILL if the process did not stop in time. */
  async stop(): Promise<number | string> {
    const timer = setTimeout(() => this.kill(), replyTimeout)
    this.#child.kill("SIGTERM")
    const [code, signal] = await once(this.#child, "exit")
    clearTimeout(timer)
    return code ?? signal
  }

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}

const nextMessage = <A>(child: ChildProcess): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => onEnd(new Error(`the server process sent no message for ${replyTimeout} ms`)),
      replyTimeout
    )
    const onMessage = (message: unknown): void => {
      off()
      resolve(message as A)
    }
    const onEnd = (error?: unknown): void => {
      off()
      reject(error instanceof Error ? error : new Error("the server process has exited"))
    }
    const off = (): void => {
      clearTimeout(timer)
      child.off("message", onMessage)
      child.off("exit", onEnd)
      child.off("error", onEnd)
    }
    child.once("message", onMessage)
    child.once("exit", onEnd)
    child.once("error", onEnd)
  })
