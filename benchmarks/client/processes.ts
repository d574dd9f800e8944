/**
 * The processes of the race: the one server, and a process for each client under test.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/children.ts"
import { cpuTimeOf } from "../lib/machine.ts"
import type { Era } from "../stdio/wire.ts"
import type { Burst, Command, Reply } from "./driver.ts"
import type { Job } from "./face.ts"
import { driverOf, type Peer, serverFile } from "./peers.ts"

/** How long a client may take for anything beyond what it was told, in milliseconds. */
const patience = 60_000

/** How the server answers, and how many tools it lists. */
export interface Manner {
  readonly sse: boolean
  readonly many: boolean
}

const plain: Manner = { sse: false, many: false }

/** The server, on a core of its own. */
export class Server {
  readonly #child: ChildProcess
  readonly #port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.#port = port
  }

  static async start(): Promise<Server> {
    const child = launch("server", [process.execPath, serverFile], { stdio: ["ignore", "pipe", "inherit", "ipc"] })
    const [line] = await once(createInterface({ input: child.stdout! }), "line") as [string]
    return new Server(child, Number(line))
  }

  url(era: Era, { many, sse }: Manner = plain): string {
    return `http://127.0.0.1:${this.#port}/${era}/${sse ? "sse" : "json"}${many ? "/many" : ""}`
  }

  /** The processor time that it has used so far, in milliseconds. */
  cpu(): number {
    return cpuTimeOf(this.#child.pid!) ?? Number.NaN
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }
}

/** A client under test, in a process of its own on the core of the load. */
export class Runner {
  readonly peer: Peer
  readonly #child: ChildProcess

  constructor(peer: Peer) {
    this.peer = peer
    const [file, ...args] = driverOf(peer)
    this.#child = launch("load", [file!, ...args], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  }

  /** Opens a client, which is the one that is driven from now on. `discover` lists its tools too. */
  async connect(url: string, era: Era, discover: boolean): Promise<void> {
    await this.#tell({ do: "connect", target: { url, era }, discover })
  }

  async burst(job: Job, inFlight: number, millis: number): Promise<Burst> {
    return await this.#tell({ do: "burst", job, inFlight, millis }) as Burst
  }

  /** Opens more clients, each of which makes a call. */
  async open(count: number, url: string, era: Era): Promise<void> {
    await this.#tell({ do: "many", target: { url, era }, count })
  }

  async memory(): Promise<NodeJS.MemoryUsage> {
    return await this.#tell({ do: "memory" }) as NodeJS.MemoryUsage
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }

  #tell(command: Command): Promise<unknown> {
    const child = this.#child
    return new Promise((resolve, reject) => {
      const over = () => {
        clearTimeout(timer)
        child.removeAllListeners("message").removeAllListeners("exit")
      }
      const fail = (message: string) => {
        over()
        reject(new Error(message))
      }
      const timer = setTimeout(() => fail(`no answer to "${command.do}" for ${patience} ms`), patience)
      child.once("exit", () => fail("its process ended"))
      child.once("message", (reply: Reply) => {
        if ("error" in reply) return fail(reply.error)
        over()
        resolve(reply.value)
      })
      child.send(command, (error) => {
        if (error !== null) fail(error.message)
      })
    })
  }
}
