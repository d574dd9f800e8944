/** Two replicas of a server behind a proxy, as the recipes configure them, for the tests of the recipes. */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as ClientHttp from "@skein/client/NodeHttp"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, fork, spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { Agent, request } from "node:http"
import { delimiter, join } from "node:path"
import { freePort } from "../../scripts/freePort.ts"
import { blocksOf } from "./blocks.ts"
import { modern } from "./process.ts"

/** The path of a program in PATH or in /usr/sbin, where Debian installs daemons. */
export const findProgram = (name: string): string | undefined =>
  [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"].map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** The blocks of a language in a recipe. */
export const blocks = (page: string, language: string): ReadonlyArray<string> =>
  blocksOf(page).filter(({ info }) => info === language).map(({ text }) => text)

const factor = 30

/** The durations of the recipes, all of them shorter by the same factor: no test waits for a minute. */
export const shortened = {
  /** The variables of the server. */
  env: {
    SKEIN_STREAM_AFTER: `${Math.round(5_000 / factor)}ms`,
    SKEIN_KEEP_ALIVE_INTERVAL: `${15_000 / factor}ms`
  },
  /** The timeout of the proxy, in seconds. */
  timeout: 60 / factor
}

/** The variables that a recipe sets, with a key in place of the file that contains it. */
const variablesOf = (page: string): Record<string, string> => {
  const [shell = ""] = blocks(page, "sh")
  const found = Object.fromEntries(
    Array.from(shell.matchAll(/(SKEIN_\w+)=(\$\([^)]*\)|\S+)/g), ([, name = "", value = ""]) => [name, value])
  )
  return { ...found, SKEIN_STATE_KEYS: "k".repeat(32) }
}

/** Repeats an effect until it returns true, with a pause for other processes. */
export const until = (condition: () => Promise<boolean>): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!(await condition().catch(() => false))) await new Promise((resolve) => setTimeout(resolve, 20))
  })

const run = (port: number, { program = "replica.ts", ...env }: Record<string, string>): ChildProcess =>
  fork(join(import.meta.dirname, program), {
    env: { ...process.env, ...env, SKEIN_PORT: String(port) },
    execArgv: ["--conditions=@skein/source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"]
  })

const exited = (child: ChildProcess): Promise<unknown> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once("exit", resolve))

/** A replica on a port of its own, which it keeps when it starts again. */
export class Replica {
  readonly port: number
  readonly #env: Record<string, string>
  #child: ChildProcess

  constructor(port: number, env: Record<string, string>) {
    this.port = port
    this.#env = env
    this.#child = run(port, env)
  }

  get pid(): number {
    return this.#child.pid!
  }

  readonly ready = Effect.suspend(() =>
    until(async () => (await fetch(`http://127.0.0.1:${this.port}/readyz`)).status === 200)
  )

  /** Ends the process as an operator does, and starts it on the same port. */
  readonly restart = Effect.promise(async () => {
    this.#child.kill("SIGTERM")
    await exited(this.#child)
    this.#child = run(this.port, this.#env)
  }).pipe(Effect.andThen(this.ready))

  kill(): void {
    this.#child.kill("SIGKILL")
  }
}

/**
 * Starts two replicas with the variables of a recipe, which some others replace, or with `program` another program. They
 * end with the scope.
 */
export const replicas = (
  page: string,
  variables: Readonly<Record<string, string>>
): Effect.Effect<readonly [Replica, Replica], never, Scope.Scope> =>
  Effect.gen(function*() {
    const env = { ...variablesOf(page), ...variables }
    const one = Effect.acquireRelease(
      Effect.map(Effect.promise(freePort), (port) => new Replica(port, env)),
      (replica) => Effect.sync(() => replica.kill())
    )
    const both = [yield* one, yield* one] as const
    for (const replica of both) yield* replica.ready
    return both
  })

/** Starts a proxy that is in `program`, and waits until it listens. It ends with the scope. */
export const startProxy = (program: string, args: ReadonlyArray<string>, port: number) =>
  Effect.gen(function*() {
    let log = ""
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] })),
      (child) =>
        Effect.promise(() => {
          child.kill("SIGKILL")
          return exited(child)
        })
    )
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (log += text))
    yield* until(async () => {
      if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}: ${log}`)
      await fetch(`http://127.0.0.1:${port}/`)
      return true
    })
    return `http://127.0.0.1:${port}`
  })

/** A client of one revision, which fills in the forms of `ask`. */
export const connect = (url: string, revision: Revision.Revision) =>
  Effect.provide(
    Client.make(ClientHttp.transport({ url }), { revisions: [revision] }),
    Elicitation.layer({
      form: ({ message }) =>
        Effect.succeed({ action: "accept", content: message === "Who?" ? { name: "Ada" } : { town: "Oslo" } })
    })
  )

/** The text of a result. */
export const textOf = (client: Client.Client, name: string, args: Record<string, unknown> = {}) =>
  Effect.map(
    client.callTool(name, args, { timeout: "10 minutes" }),
    ({ content }) => (content[0] as { readonly text: string }).text
  )

/** Sends requests of 2026-07-28 on connections that are kept open, several at a time, until it is stopped. */
export const underLoad = <E, R>(origin: string, work: Effect.Effect<void, E, R>) =>
  Effect.gen(function*() {
    const agent = new Agent({ keepAlive: true })
    const { body, headers, method } = modern("tools/call", { name: "process", arguments: {} })
    const answers = new Map<string, number>()
    const failures: Array<string> = []
    let isOver = false
    const send = () =>
      new Promise<void>((resolve) => {
        const failed = (error: Error) => {
          failures.push(error.message)
          resolve()
        }
        const sent = request(`${origin}/mcp`, { agent, method, headers }, (response) => {
          let text = ""
          response.setEncoding("utf8").on("data", (part: string) => void (text += part)).once("end", () => {
            const pid = /"text":"(\d+)"/.exec(text)?.[1]
            if (response.statusCode === 200 && pid !== undefined) answers.set(pid, (answers.get(pid) ?? 0) + 1)
            else failures.push(`${response.statusCode}: ${text.slice(0, 200)}`)
            resolve()
          }).once("error", failed)
        })
        sent.once("error", failed).end(body)
      })
    const loops = Array.from({ length: 8 }, async () => {
      while (!isOver) await send()
    })
    yield* Effect.ensuring(work, Effect.sync(() => void (isOver = true)))
    yield* Effect.promise(() => Promise.all(loops))
    agent.destroy()
    return { answers, failures }
  })
