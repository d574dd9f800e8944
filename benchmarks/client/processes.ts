/**
 * The processes of the client benchmark: one server, and a process for each client under test.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/childProcesses.ts"
import { cpuTimeOf } from "../lib/machine.ts"
import type { Era } from "../stdio/messages.ts"
import type { Burst, Command, Reply } from "./driver.ts"
import type { Job } from "./testClient.ts"
import { driverOf, type Peer, serverFile } from "./peers.ts"

/** How long a client may take to reply to a command, in milliseconds. */
const replyTimeout = 60_000

/** How the server responds. `long` selects the long list of tools. */
export interface ResponseMode {
  readonly sse: boolean
  readonly long: boolean
}

const json: ResponseMode = { sse: false, long: false }

/** The server, on its own core. */
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

  url(era: Era, { long, sse }: ResponseMode = json): string {
    return `http://127.0.0.1:${this.#port}/${era}/${sse ? "sse" : "json"}${long ? "/long" : ""}`
  }

  /** The processor time that the server has used so far, in milliseconds. */
  cpu(): number {
    return cpuTimeOf(this.#child.pid!) ?? Number.NaN
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }
}

/** The process of a client under test, on the core of the load. */
export class Runner {
  readonly peer: Peer
  readonly #child: ChildProcess

  constructor(peer: Peer) {
    this.peer = peer
    const [file, ...args] = driverOf(peer)
    this.#child = launch("load", [file!, ...args], { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  }

  /** Opens a client, which later bursts use. With `discover` it also lists the tools. */
  async connect(url: string, era: Era, discover: boolean): Promise<void> {
    await this.#send({ do: "connect", target: { url, era }, discover })
  }

  async burst(job: Job, inFlight: number, millis: number): Promise<Burst> {
    return await this.#send({ do: "burst", job, inFlight, millis }) as Burst
  }

  /** Opens more clients, each of which makes a call. */
  async open(count: number, url: string, era: Era): Promise<void> {
    await this.#send({ do: "many", target: { url, era }, count })
  }

  async memory(): Promise<NodeJS.MemoryUsage> {
    return await this.#send({ do: "memory" }) as NodeJS.MemoryUsage
  }

  stop(): Promise<void> {
    return kill(this.#child)
  }

  #send(command: Command): Promise<unknown> {
    const child = this.#child
    return new Promise((resolve, reject) => {
      const cleanUp = () => {
        clearTimeout(timer)
        child.removeAllListeners("message").removeAllListeners("exit")
      }
      const fail = (message: string) => {
        cleanUp()
        reject(new Error(message))
      }
      const timer = setTimeout(() => fail(`no reply to "${command.do}" within ${replyTimeout} ms`), replyTimeout)
      child.once("exit", () => fail("the client process exited"))
      child.once("message", (reply: Reply) => {
        if ("error" in reply) return fail(reply.error)
        cleanUp()
        resolve(reply.value)
      })
      child.send(command, (error) => {
        if (error !== null) fail(error.message)
      })
    })
  }
}
