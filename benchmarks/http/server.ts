/**
 * A server under test: a process of its own, which says its port on the first line of its stdout.
 */
import type { ChildProcess } from "node:child_process"
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/children.ts"
import { cpuTimeOf } from "../lib/machine.ts"
import { commandOf, type Peer } from "./peers.ts"

/** How long a server may take to start, or to tell its memory, in milliseconds. */
const patience = 30_000

export class Server {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(peer: Peer, args: ReadonlyArray<string>): Promise<Server> {
    const child = launch("server", commandOf(peer, args), { stdio: ["ignore", "pipe", "inherit", "ipc"] })
    try {
      const line = await within<string>("it did not start", (resolve, reject) => {
        createInterface({ input: child.stdout! }).once("line", resolve)
        child.once("error", reject)
        child.once("exit", () => reject(new Error("it ended at its start")))
      })
      const port = Number(line)
      if (!(port > 0)) throw new Error(`its first line is not a port: ${line}`)
      return new Server(child, port)
    } catch (error) {
      await kill(child)
      throw error
    }
  }

  /** Its memory after garbage was collected, in bytes. */
  memory(): Promise<NodeJS.MemoryUsage> {
    return within<NodeJS.MemoryUsage>("it did not tell its memory", (resolve, reject) => {
      this.#child.once("message", (usage) => resolve(usage as NodeJS.MemoryUsage))
      this.#child.send("memory", (error) => {
        if (error !== null) reject(error)
      })
    })
  }

  /** The processor time that it has used so far, in milliseconds. */
  cpu(): number {
    return cpuTimeOf(this.#child.pid!) ?? Number.NaN
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }
}

const within = async <A>(
  otherwise: string,
  body: (resolve: (value: A) => void, reject: (error: Error) => void) => void
): Promise<A> => {
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<A>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${otherwise} within ${patience} ms`)), patience)
      body(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
  }
}
