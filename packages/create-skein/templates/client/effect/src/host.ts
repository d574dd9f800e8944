/** The part of the application that uses servers: their tools, and their questions to the user. */
import * as ClientPool from "@skein/client/ClientPool"
import * as Elicitation from "@skein/client/Elicitation"
import * as Effect from "effect/Effect"

/** Asks the user. `undefined`: the user does not answer. */
export type Ask = (question: string) => Effect.Effect<string | undefined>

/** Answers the questions of the servers, field by field. */
export const answering = (ask: Ask) =>
  Elicitation.layer({
    form: ({ message, problem, requestedSchema, server }) =>
      Effect.gen(function*() {
        const content: Record<string, string | number | boolean> = {}
        for (const [name, field] of Object.entries(requestedSchema.properties)) {
          const text = yield* ask(`${server.label} asks: ${message} (${field.title ?? name}) `)
          if (text === undefined || text === "") return Elicitation.decline
          content[name] = field.type === "boolean" ? /^y/i.test(text) : field.type === "string" ? text : Number(text)
        }
        return problem(content) === undefined ? Elicitation.accept(content) : Elicitation.decline
      })
  })

/** The tools of all servers: a line for each tool, or for a server that cannot be listed. */
export const listTools = Effect.gen(function*() {
  const pool = yield* ClientPool.ClientPool
  return (yield* pool.tools).flatMap(({ result, server }) =>
    result._tag === "Success"
      ? result.success.map(({ description, name }) => `${server} ${name}: ${description ?? ""}`)
      : [`${server}: ${result.failure.message}`]
  )
})

/** Calls a tool, and returns the text of its result. */
export const callTool = (server: string, tool: string, args: Record<string, unknown> = {}) =>
  Effect.gen(function*() {
    const pool = yield* ClientPool.ClientPool
    const client = yield* pool.client(server)
    const { content } = yield* client.callTool(tool, args)
    return content.map((block) => block.type === "text" ? block.text : `[${block.type}]`).join("\n")
  })
