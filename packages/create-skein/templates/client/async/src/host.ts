/**
 * The part of the application that uses servers: their tools, and their questions to the user. It turns the effects of
 * the client into promises, for the other modules.
 */
import * as ClientPool from "@skein/client/ClientPool"
import * as Elicitation from "@skein/client/Elicitation"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"

/** Asks the user. `undefined`: the user does not answer. The signal aborts when the question is no longer open. */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

/** Answers the questions of the servers, field by field. */
const answering = (ask: Ask) =>
  Elicitation.layer({
    form: ({ message, problem, requestedSchema, server }) =>
      Effect.promise(async (signal) => {
        const content: Record<string, string | number | boolean> = {}
        for (const [name, field] of Object.entries(requestedSchema.properties)) {
          const text = await ask(`${server.label} asks: ${message} (${field.title ?? name}) `, signal)
          if (text === undefined || text === "") return Elicitation.decline
          content[name] = field.type === "boolean" ? /^y/i.test(text) : field.type === "string" ? text : Number(text)
        }
        return problem(content) === undefined ? Elicitation.accept(content) : Elicitation.decline
      })
  })

export interface Host {
  /** The tools of all servers: a line for each tool, or for a server that cannot be listed. */
  readonly listTools: () => Promise<ReadonlyArray<string>>
  /** Calls a tool, and returns the text of its result. */
  readonly callTool: (server: string, tool: string, args?: Record<string, unknown>) => Promise<string>
  /** Closes the connections, and ends the processes of the servers. */
  readonly close: () => Promise<void>
}

/** Opens the servers. They are closed by `close`. */
export const openHost = <E>(servers: Layer.Layer<ClientPool.ClientPool, E>, ask: Ask): Host => {
  const runtime = ManagedRuntime.make(Layer.provide(servers, answering(ask)))
  return {
    listTools: () =>
      runtime.runPromise(Effect.gen(function*() {
        const pool = yield* ClientPool.ClientPool
        return (yield* pool.tools).flatMap(({ result, server }) =>
          result._tag === "Success"
            ? result.success.map(({ description, name }) => `${server} ${name}: ${description ?? ""}`)
            : [`${server}: ${result.failure.message}`]
        )
      })),
    callTool: (server, tool, args = {}) =>
      runtime.runPromise(Effect.gen(function*() {
        const pool = yield* ClientPool.ClientPool
        const client = yield* pool.client(server)
        const { content } = yield* client.callTool(tool, args)
        return content.map((block) => block.type === "text" ? block.text : `[${block.type}]`).join("\n")
      })),
    close: () => runtime.dispose()
  }
}
