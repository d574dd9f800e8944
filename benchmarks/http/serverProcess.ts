/**
 * A server under test as a child process. Its first line on stdout is its port.
 */
import type { ChildProcess } from "node:child_process"
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/childProcesses.ts"
import { childrenOf, cpuTimeOf } from "../lib/machine.ts"
import { commandOf, type Peer } from "./peers.ts"

/** How long a server may take to start, or to report its memory, in milliseconds. */
const replyTimeout = 30_000

export class ServerProcess {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(peer: Peer, args: ReadonlyArray<string>): Promise<ServerProcess> {
    const child = launch("server", commandOf(peer, args), { stdio: ["ignore", "pipe", "inherit", "ipc"] })
    try {
      const line = await within<string>("the server did not start", (resolve, reject) => {
        createInterface({ input: child.stdout! }).once("line", resolve)
        child.once("error", reject)
        child.once("exit", () => reject(new Error("the server exited during its start")))
      })
      const port = Number(line)
      if (!(port > 0)) throw new Error(`the first line of the server is not a port: ${line}`)
      return new ServerProcess(child, port)
    } catch (error) {
      await kill(child)
      throw error
    }
  }

  /** The memory of the server after a garbage collection, in bytes. */
  memory(): Promise<NodeJS.MemoryUsage> {
    return within<NodeJS.MemoryUsage>("the server did not report its memory", (resolve, reject) => {
      this.#child.once("message", (usage) => resolve(usage as NodeJS.MemoryUsage))
      this.#child.send("memory", (error) => {
        if (error !== null) reject(error)
      })
    })
  }

  /** The processor time that the server has used so far, in milliseconds, its workers included. */
  cpu(): number {
    const pid = this.#child.pid!
    return [pid, ...childrenOf(pid)].reduce((sum, pid) => sum + (cpuTimeOf(pid) ?? Number.NaN), 0)
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }
}

const within = async <A>(
  message: string,
  body: (resolve: (value: A) => void, reject: (error: Error) => void) => void
): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<A>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${message} within ${replyTimeout} ms`)), replyTimeout)
      body(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
  }
}
