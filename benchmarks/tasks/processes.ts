/**
 * The processes that are measured, and how they are made ready to run.
 */
import { build } from "esbuild"
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join } from "node:path"
import { kill, launch } from "../lib/children.ts"
import type { Burst, Command, Reply, Store, Stride } from "./wire.ts"

/** How long a process may take for anything beyond what it was told, in milliseconds. */
const patience = 300_000

const here = fileURLToPath(new URL(".", import.meta.url))
const out = join(here, "..", "dist", "tasks")
const packages = join(here, "..", "..", "packages")

/** Who is measured. */
export type Subject = "skein" | "sdk-v1"

/** The packages that have not been built: those are installed as they are built, and run from their sources otherwise. */
export const unbuilt = (): ReadonlyArray<string> =>
  ["protocol", "runtime", "server", "client", "sql", "tasks"].filter((room) =>
    !existsSync(join(packages, room, "dist", "index.js"))
  )

let conditions: ReadonlyArray<string> = []

/** Makes programs of the subjects, which find Skein's packages as they are built, or their sources. */
export const prepare = async (source: boolean): Promise<void> => {
  conditions = source ? ["--conditions=@skein/source"] : []
  await build({
    entryPoints: (["skein", "sdk-v1"] satisfies ReadonlyArray<Subject>).map((name) =>
      join(here, "subjects", `${name}.ts`)
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
  /** Hears of the steps that end in it. */
  onStride: (stride: Stride) => void = () => {}

  /** `steady`: V8 shrinks no heap of a process that idles while others have their turn; what it does next is dearer otherwise. */
  constructor(subject: Subject, steady = true) {
    this.#child = launch("load", [
      process.execPath,
      "--expose-gc",
      ...(steady ? ["--no-memory-reducer"] : []),
      "--disable-warning=ExperimentalWarning",
      ...conditions,
      join(out, `${subject}.mjs`)
    ], { stdio: ["ignore", "ignore", "inherit", "ipc"] })
    this.#child.on("message", (reply: Reply) => {
      if ("stride" in reply) return this.onStride(reply.stride)
      const waiting = this.#waiting
      this.#waiting = undefined
      if ("error" in reply) waiting?.reject(new Error(reply.error))
      else waiting?.resolve(reply.value)
    })
    this.#child.once("exit", () => {
      this.#ended = true
      this.#waiting?.reject(new Error("its process ended"))
    })
  }

  /** A server with an engine, which works, and maybe listens: then it says where. */
  static async serving(
    store: Store,
    at: string,
    { door = false, steady = true, work = true }: {
      readonly door?: boolean
      readonly steady?: boolean
      readonly work?: boolean
    } = {}
  ): Promise<{ readonly program: Program; readonly url: string }> {
    const program = new Program("skein", steady)
    return { program, url: await program.tell({ do: "open", store, at, work, door }) as string }
  }

  /** A client of a server. */
  static async client(url: string): Promise<Program> {
    const program = new Program("skein")
    await program.tell({ do: "connect", url })
    return program
  }

  tell(command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(new Error("its process ended"))
      const timer = setTimeout(() => {
        this.#waiting?.reject(new Error(`no answer to "${command.do}" for ${patience} ms`))
      }, patience)
      const over = <A>(settle: (value: A) => void) => (value: A) => {
        clearTimeout(timer)
        settle(value)
      }
      this.#waiting = { resolve: over(resolve), reject: over(reject) }
      this.#child.send(command, (error) => {
        if (error !== null) this.#waiting?.reject(error)
      })
    })
  }

  async burst(command: Omit<Extract<Command, { readonly do: "burst" }>, "do">): Promise<Burst> {
    return await this.tell({ do: "burst", ...command }) as Burst
  }

  /** The processor time that it has used so far, in milliseconds. */
  async cpu(): Promise<number> {
    return await this.tell({ do: "cpu" }) as number
  }

  async memory(): Promise<NodeJS.MemoryUsage> {
    return await this.tell({ do: "memory" }) as NodeJS.MemoryUsage
  }

  /** It stops as its host would stop it, and what it does is handed over. */
  async close(): Promise<void> {
    await this.tell({ do: "close" })
  }

  kill(): Promise<void> {
    return kill(this.#child)
  }
}
