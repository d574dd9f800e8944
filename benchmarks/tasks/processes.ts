/**
 * The measured processes, and the build of their programs.
 */
import { build } from "esbuild"
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { kill, launch } from "../lib/childProcesses.ts"
import { programName } from "../stdio/peers.ts"
import type { Burst, Command, Reply, StepEnd, Store } from "./commands.ts"

/** How long a process may take to reply to a command, in milliseconds. */
const replyTimeout = 300_000

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "tasks")
const packages = join(here, "..", "..", "packages")

/** The measured library. */
export type PeerName = "skein" | "sdk-v1" | "dbos"

/** The packages without a build. If there are any, the benchmark runs from the sources. */
export const unbuiltPackages = (): ReadonlyArray<string> =>
  ["protocol", "runtime", "server", "client", "sql", "tasks"].filter((name) =>
    !existsSync(join(packages, name, "dist"))
  )

let conditions: ReadonlyArray<string> = []

/** Builds the programs. They import the built packages of Skein, or their sources. */
export const prepare = async (source: boolean): Promise<void> => {
  conditions = source ? ["--conditions=@skein/source"] : []
  await build({
    entryPoints: (["skein", "sdk-v1", "dbos"] satisfies ReadonlyArray<PeerName>).map((name) =>
      join(here, "peers", `${programName(name)}.ts`)
    ),
    outdir: out,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "warning",
    outExtension: { ".js": ".mjs" }
  })
}

/** A process under test. */
export class Program {
  readonly #child: ChildProcess
  #waiting: { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void } | undefined
  #ended = false
  /** Called when a step ends in this process. */
  onStepEnd: (stepEnd: StepEnd) => void = () => {}

  /**
   * `keepHeap` disables V8's memory reducer, which shrinks the heap of an idle process and so makes its next operations
   * slower.
   */
  constructor(peer: PeerName, keepHeap = true) {
    this.#child = launch("load", [
      process.execPath,
      "--expose-gc",
      ...(keepHeap ? ["--no-memory-reducer"] : []),
      "--disable-warning=ExperimentalWarning",
      ...conditions,
      join(out, `${programName(peer)}.mjs`)
    ], { stdio: ["ignore", "ignore", "inherit", "ipc"] })
    this.#child.on("message", (reply: Reply) => {
      if ("stepEnd" in reply) return this.onStepEnd(reply.stepEnd)
      const waiting = this.#waiting
      this.#waiting = undefined
      if ("error" in reply) waiting?.reject(new Error(reply.error))
      else waiting?.resolve(reply.value)
    })
    this.#child.once("exit", () => {
      this.#ended = true
      this.#waiting?.reject(new Error("the process exited"))
    })
  }

  /**
   * Starts a server with an engine. With `work` the engine runs tasks; with `listen` the server listens at the returned
   * URL.
   */
  static async startServer(
    store: Store,
    at: string,
    { listen = false, keepHeap = true, work = true }: {
      readonly listen?: boolean
      readonly keepHeap?: boolean
      readonly work?: boolean
    } = {}
  ): Promise<{ readonly program: Program; readonly url: string }> {
    const program = new Program("skein", keepHeap)
    return { program, url: await program.send({ do: "open", store, at, work, listen }) as string }
  }

  /** Starts a client of a server. */
  static async startClient(url: string): Promise<Program> {
    const program = new Program("skein")
    await program.send({ do: "connect", url })
    return program
  }

  send(command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(new Error("the process exited"))
      const timer = setTimeout(() => {
        this.#waiting?.reject(new Error(`no reply to "${command.do}" within ${replyTimeout} ms`))
      }, replyTimeout)
      const settled = <A>(settle: (value: A) => void) => (value: A) => {
        clearTimeout(timer)
        settle(value)
      }
      this.#waiting = { resolve: settled(resolve), reject: settled(reject) }
      this.#child.send(command, (error) => {
        if (error !== null) this.#waiting?.reject(error)
      })
    })
  }

  async burst(command: Omit<Extract<Command, { readonly do: "burst" }>, "do">): Promise<Burst> {
    return await this.send({ do: "burst", ...command }) as Burst
  }

  /** The processor time that the process has used so far, in milliseconds. */
  async cpu(): Promise<number> {
    return await this.send({ do: "cpu" }) as number
  }

  async memory(): Promise<NodeJS.MemoryUsage> {
    return await this.send({ do: "memory" }) as NodeJS.MemoryUsage
  }

  /** Shuts the process down gracefully. Other workers take over its tasks. */
  async close(): Promise<void> {
    await this.send({ do: "close" })
  }

  kill(): Promise<void> {
    return kill(this.#child)
  }
}
