/** A host that records the requests of servers, and clients of scripted servers. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as RequestingServer from "../../src/RequestingServer.ts"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Roots from "../../src/Roots.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

export type Json = any

/** A request that a host received. */
export interface Seen {
  readonly kind: "form" | "url" | "sampling"
  readonly asker: RequestingServer.RequestingServer
  readonly request: Json
}

/** Answers elicitation, sampling and roots in the same way for every revision. */
export class Host {
  readonly seen: Array<Seen> = []

  readonly elicitation = Elicitation.layer({
    form: ({ server: asker, ...request }) => {
      this.seen.push({ kind: "form", asker, request })
      const fields = Object.keys(request.requestedSchema.properties)
      const content = fields.includes("people")
        ? { people: 3 }
        : fields.includes("toppings")
        ? { toppings: ["h", "o"] }
        : {}
      return Effect.succeed(Elicitation.accept(content))
    },
    url: ({ server: asker, ...request }) => {
      this.seen.push({ kind: "url", asker, request })
      return Effect.succeed(Elicitation.consent())
    }
  })

  readonly sampling = Sampling.layer(({ server: asker, ...request }) => {
    this.seen.push({ kind: "sampling", asker, request })
    return Effect.succeed(reply(request))
  }, { tools: true, context: true })

  readonly roots = Roots.layer([{ uri: "file:///home", name: "home" }])

  get layer() {
    return Layer.mergeAll(this.elicitation, this.sampling, Layer.orDie(this.roots))
  }
}

export const textAnswer = (text: string): Sampling.Answer => ({
  role: "assistant",
  model: "m",
  content: { type: "text", text },
  stopReason: "endTurn"
})

/** Repeats the first message. If tools are given, it uses them, and then returns their results as text. */
const reply = ({ messages, tools }: Omit<Sampling.Request, "server">): Sampling.Answer => {
  const contentOf = (index: number): Json => messages[index]!.content
  if (tools === undefined) return textAnswer(`re: ${contentOf(0).text}`)
  if (messages.length > 1) {
    return textAnswer(contentOf(2).map((block: Json) => `${block.toolUseId} ${block.content[0].text}`).join("; "))
  }
  const use = (id: string, city: string) => ({ type: "tool_use" as const, id, name: "weather", input: { city } })
  return { role: "assistant", model: "m", content: [use("1", "Paris"), use("2", "London")], stopReason: "toolUse" }
}

/** A client of a transport, with the services of a host. */
export const connect = <A>(transport: Transport, host: Layer.Layer<A>, options?: Client.Options) =>
  Effect.map(
    Layer.build(Layer.provide(Client.layer(transport, options), host)),
    (context) => Context.get(context, Client.Client)
  )

/** A client of a scripted server. */
export const open = <A>(
  revision: Revision.Revision,
  host: Layer.Layer<A>,
  script: ScriptedServer.Script = () => ScriptedServer.success({ content: [] }),
  options?: Client.Options
) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script))
    const client = yield* connect(server.transport, host, options)
    // When the ping is answered, the server has received the end of the handshake.
    yield* client.ping()
    return { server, client }
  })

/** An `input_required` result of 2026-07-28. */
export const inputRequired = (inputRequests: Json, requestState?: string): ScriptedServer.Reply =>
  ScriptedServer.success({
    resultType: "input_required",
    ...(inputRequests === undefined ? undefined : { inputRequests }),
    ...(requestState === undefined ? undefined : { requestState })
  })

export const done = ScriptedServer.success({ resultType: "complete", content: [] })

/**
 * Sends a request to the client, up to 2025-11-25, and returns the response; `undefined` if none arrives within 50
 * turns.
 */
export const ask = (server: ScriptedServer.ScriptedServer, method: string, params?: Json, id: JsonRpc.Id = "q") =>
  Effect.gen(function*() {
    server.send({ _tag: "Request", id, method, params })
    for (let turn = 0; turn < 50; turn++) {
      const response = server.responses.find((response) => response.id === id)
      if (response !== undefined) return response as Json
      yield* turns(1)
    }
    return undefined
  })

/** Waits some turns of the event loop. */
export const turns = (count = 5): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (let turn = 0; turn < count; turn++) {
      yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    }
  })

export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

export const failure = (fiber: Fiber.Fiber<unknown, ClientError>): ClientError | undefined => {
  const exit = fiber.pollUnsafe()
  return exit?._tag === "Failure" ? exit.cause.reasons.find(Cause.isFailReason)?.error : undefined
}

/** Runs an effect with a logger that records every line. */
export const logged = <A, E, R>(f: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
      lines.push(`${logLevel} ${[message].flat().join(" ")} ${cause.reasons.length === 0 ? "" : Cause.pretty(cause)}`)
    })
    return Effect.provide(f(lines), Logger.layer([logger]))
  })

export const form = (properties: Json, required?: ReadonlyArray<string>): Json => ({
  mode: "form",
  message: "Well?",
  requestedSchema: { type: "object", properties, ...(required === undefined ? undefined : { required }) }
})
