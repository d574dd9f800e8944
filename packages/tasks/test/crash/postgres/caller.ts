/**
 * A client with promises, for the scenarios.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Handle, RemoteTask } from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Gate } from "./tools.ts"

/** The end of a call: its text, or the tag of the reason why it failed. */
export type Ended = string

/** A client of the front server. */
export class Caller {
  readonly #client: Client.Client
  readonly #scope: Scope.Closeable
  readonly #forms: { count: number }

  private constructor(client: Client.Client, scope: Scope.Closeable, forms: { count: number }) {
    this.#client = client
    this.#scope = scope
    this.#forms = forms
  }

  /** How many forms the client has received. */
  get forms(): number {
    return this.#forms.count
  }

  /** `answers`: it accepts all questions. `tasks`: it supports tasks. `legacy`: it has a session. */
  static async open(url: string, { answers = true, legacy = false, tasks = true } = {}): Promise<Caller> {
    const scope = Scope.makeUnsafe()
    const made = Client.make(NodeHttp.transport({ url }), {
      revisions: [legacy ? "2025-11-25" : "2026-07-28"],
      tasks: tasks && { maxFailures: 1_000 }
    })
    const forms = { count: 0 }
    const form = () =>
      Effect.suspend(() => {
        forms.count++
        return answers ? Effect.succeed(Elicitation.accept({ sure: true })) : Effect.never
      })
    return new Caller(await run(Scope.provide(Effect.provide(made, Elicitation.layer({ form })), scope)), scope, forms)
  }

  async start(tool: "held", args: { readonly gates: ReadonlyArray<Gate> }): Promise<RemoteTask>
  async start(tool: "beats", args: { readonly every: number; readonly times: number }): Promise<RemoteTask>
  async start(tool: "races", args: { readonly jitter: number }): Promise<RemoteTask>
  async start(tool: "blocks", args: { readonly milliseconds: number }): Promise<RemoteTask>
  async start(tool: string, args: object): Promise<RemoteTask> {
    const started = await run(this.#client.startTask(tool, { ...args }))
    if (started._tag !== "RemoteTask") throw new Error(`${tool} is no task`)
    return started
  }

  /** Waits for a task that another client has started. */
  async take(handle: Handle): Promise<Ended> {
    return run(Effect.flatMap(this.#client.resumeTask(handle), ended))
  }

  /** Calls, and waits. */
  async call(tool: "held", args: { readonly gates: ReadonlyArray<Gate> }): Promise<Ended> {
    return run(ended({ result: this.#client.callTool(tool, { ...args }) }))
  }

  close(): Promise<void> {
    return run(Scope.close(this.#scope, Exit.void))
  }
}

const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)

const ended = ({ result }: Pick<RemoteTask, "result">): Effect.Effect<Ended> =>
  Effect.map(Effect.result(result), (ended) => {
    if (Result.isFailure(ended)) return ended.failure.reason._tag
    const [content] = ended.success.content
    return content?.type === "text" ? content.text : "?"
  })

/** The end of a task, for the client that has started it. */
export const endOf = (task: RemoteTask): Promise<Ended> => run(ended(task))

export const cancel = (task: RemoteTask): Promise<void> => run(task.cancel)
