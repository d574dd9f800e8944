/**
 * One client for every transport, for clauses that hold over all of them. Every message of the server is validated
 * against the official schemas of the revision. The test files of this folder are numbered in the order of the
 * sections of the specification.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type * as Catalog from "@skein/server/Catalog"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Stdio from "@skein/server/Stdio"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { PassThrough } from "node:stream"
import * as http from "../http/kit.ts"
import { watching } from "../http/watch.ts"
import * as kit from "../kit.ts"
import { type Json, Talk } from "../oracle.ts"

/** A client of a server, independent of the transport. */
export interface Client {
  readonly revision: Revision.Revision
  /** Sends a request in the client's revision, and waits for its response. The default id counts from 1. */
  readonly request: (method: string, params?: Json, id?: JsonRpc.Id) => Effect.Effect<Json>
  /** Returns the result of a request, and dies if it is an error. */
  readonly result: (method: string, params?: Json) => Effect.Effect<Json>
  /** Returns the error of a request, and dies if it is a result. */
  readonly error: (method: string, params?: Json) => Effect.Effect<Json>
  /** Sends a notification. */
  readonly notify: (method: string, params?: Json) => Effect.Effect<void>
  /** Sends a response. */
  readonly respond: (
    response: { readonly id: JsonRpc.Id; readonly result?: Json; readonly error?: Json }
  ) => Effect.Effect<void>
  /** The messages of the server other than responses, in order. */
  readonly received: ReadonlyArray<Json>
  /** Resolves when the server has sent a message that meets the condition. */
  readonly receive: (condition: (message: Json) => boolean) => Effect.Effect<Json>
}

/** The revision of a client and its declared capabilities. */
export interface Options {
  readonly capabilities?: JsonRpc.JsonObject
  /** Answers requests of the server of a session. */
  readonly answer?: (question: Json) => Json
  /** Whether to initialize the session. The default is `true`. */
  readonly initialize?: boolean
}

export interface Transport {
  readonly name: string
  readonly revisions: ReadonlyArray<Revision.Revision>
  /** Whether all messages of a client pass through one pair of channels, in every revision. */
  readonly isDuplex: boolean
  readonly connect: (
    server: kit.Server,
    revision: Revision.Revision,
    options?: Options
  ) => Effect.Effect<Client, never, Scope.Scope>
}

const hello = (revision: Revision.Revision, { capabilities = {} }: Options): JsonRpc.JsonObject => ({
  ...kit.hello(revision),
  capabilities
})

/** The params of a request with the metadata that its revision requires. */
const whole = (revision: Revision.Revision, params: Json, { capabilities = {} }: Options): Json =>
  Revision.era(revision) === "session" ? params : {
    ...params,
    _meta: { ...kit.meta(), "io.modelcontextprotocol/clientCapabilities": capabilities, ...params?._meta }
  }

/** Adds the methods that follow from `request`. */
const withResults = (client: Omit<Client, "result" | "error">): Client => ({
  ...client,
  result: (method, params) =>
    Effect.flatMap(
      client.request(method, params),
      ({ error, result }) =>
        error === undefined ? Effect.succeed(result) : Effect.die(new Error(`${method}: ${JSON.stringify(error)}`))
    ),
  error: (method, params) =>
    Effect.flatMap(
      client.request(method, params),
      ({ error, result }) =>
        error === undefined ? Effect.die(new Error(`${method}: ${JSON.stringify(result)}`)) : Effect.succeed(error)
    )
})

/** Stores the received messages, and wakes the waiting calls. */
class MessageLog {
  readonly all: Array<Json> = []
  readonly #waiting = new Set<() => void>()

  push(message: Json): void {
    this.all.push(message)
    for (const wake of [...this.#waiting]) wake()
  }

  receive(condition: (message: Json) => boolean): Effect.Effect<Json> {
    return Effect.callback<Json>((resume) => {
      const look = (): void => {
        const found = this.all.find(condition)
        if (found === undefined) return
        this.#waiting.delete(look)
        resume(Effect.succeed(found))
      }
      this.#waiting.add(look)
      look()
      return Effect.sync(() => void this.#waiting.delete(look))
    })
  }
}

/** One duplex connection for all messages, as stdio and HTTP+SSE are to a client. */
const duplex = (
  revision: Revision.Revision,
  options: Options,
  write: (message: Json) => void
): { readonly client: Client; readonly receive: (message: Json) => void } => {
  const received = new MessageLog()
  const responses = new MessageLog()
  const talk = new Talk(revision)
  let ids = 0
  const send = (message: object): void => {
    const whole = { jsonrpc: "2.0", ...message }
    talk.ask(whole)
    write(whole)
  }
  const request = (method: string, params: Json = {}, id: JsonRpc.Id = ++ids): Effect.Effect<Json> =>
    Effect.suspend(() => {
      send({ id, method, params: whole(revision, params, options) })
      return responses.receive((message) => message.id === id)
    })
  return {
    receive: (message) => {
      watching(() => {
        talk.receive(message)
        if (message.method !== undefined) return
        if (responses.all.some(({ id }) => id === message.id)) throw new Error(`two responses: ${message.id}`)
      })
      if (message.method === undefined) return responses.push(message)
      received.push(message)
      if (message.id !== undefined) send({ id: message.id, result: options.answer!(message) })
    },
    client: withResults({
      revision,
      request,
      notify: (method, params) => Effect.sync(() => send({ method, ...(params === undefined ? {} : { params }) })),
      respond: (response) => Effect.sync(() => send(response)),
      received: received.all,
      receive: (condition) => received.receive(condition)
    })
  }
}

/** Initializes the session in the revisions that have one. */
const initialized = (client: Client, options: Options): Effect.Effect<Client> =>
  Revision.era(client.revision) === "stateless" || options.initialize === false ?
    Effect.succeed(client) :
    client.request("initialize", hello(client.revision, options)).pipe(
      Effect.andThen(client.notify("notifications/initialized")),
      Effect.as(client)
    )

/** Two ends in one process. */
const memory: Transport = {
  name: "in memory",
  revisions: Revision.all,
  isDuplex: true,
  connect: (server, revision, options = {}) =>
    Effect.gen(function*() {
      const { serve } = Context.get(yield* Effect.orDie(Layer.build(server)), McpServer.McpServer)
      const [near, far] = yield* InMemoryTransport.make()
      yield* serve(near)
      const { client, receive } = duplex(
        revision,
        options,
        (message) => far.send(JsonRpc.parse(message) as JsonRpc.Message)
      )
      far.open({
        message: (message) => receive(JSON.parse(JsonRpc.encode(message as JsonRpc.Outbound))),
        end: () => {}
      })
      return yield* initialized(client, options)
    })
}

/** Lines of JSON through two pipes, as to a separate process. */
const stdio: Transport = {
  name: "stdio",
  revisions: Revision.all,
  isDuplex: true,
  connect: (server, revision, options = {}) =>
    Effect.gen(function*() {
      const input = new PassThrough()
      const output = new PassThrough()
      yield* Effect.orDie(Layer.build(Layer.provide(Stdio.layer({ input, output }), server)))
      const { client, receive } = duplex(
        revision,
        options,
        (message) => void input.write(`${JSON.stringify(message)}\n`)
      )
      let rest = ""
      output.setEncoding("utf8")
      output.on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop()!
        for (const line of lines) receive(JSON.parse(line))
      })
      return yield* initialized(client, options)
    })
}

/** The endpoint with all options enabled, on a free port. */
const listen = (server: kit.Server, options?: NodeHttp.Options) =>
  Effect.map(
    Effect.orDie(Layer.build(Layer.provide(
      NodeHttp.layer({ port: 0, legacySse: LegacySse.make(), ...options }),
      server as Layer.Layer<McpServer.McpServer | Catalog.Catalog, unknown>
    ))),
    (context) => Context.get(context, NodeHttp.Server)
  )

/** HTTP+SSE of 2024-11-05. */
const legacy: Transport = {
  name: "HTTP+SSE",
  revisions: Revision.sessionBased,
  isDuplex: true,
  connect: (server, revision, options = {}) =>
    Effect.gen(function*() {
      const at = yield* listen(server)
      const stream = yield* http.open(at, { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } })
      const { data: path } = yield* stream.next
      const context = yield* kit.here
      const run = Effect.runForkWith(context)
      const { client, receive } = duplex(revision, options, (body) => {
        run(http.send(at, { path: path!, headers: { "content-type": "application/json" }, body }))
      })
      yield* Effect.forkScoped(Effect.forever(Effect.map(stream.message, receive)))
      return yield* initialized(client, options)
    })
}

/** Streamable HTTP in both eras. A session listens by GET from its beginning. */
const streamable = (name: string, settings?: NodeHttp.Options): Transport => ({
  name,
  revisions: Revision.all,
  isDuplex: false,
  connect: (server, revision, options = {}) =>
    Effect.gen(function*() {
      const at = yield* listen(server, settings)
      const received = new MessageLog()
      let ids = 0
      let session: { readonly [name: string]: string } = Revision.era(revision) === "session"
        ? {}
        : { "mcp-protocol-version": revision }
      // "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body."
      const post = (message: object): Effect.Effect<void> =>
        Effect.map(Effect.suspend(() => http.post(at, { jsonrpc: "2.0", ...message }, session)), ({ status, text }) => {
          if (status !== 202 || text !== "") throw new Error(`${status} ${text}`)
        })
      const took = (message: Json): Effect.Effect<unknown> => {
        received.push(message)
        return message.id === undefined
          ? Effect.void
          : post({ id: message.id, result: options.answer!(message) })
      }
      const asked = (method: string, params: Json, id: JsonRpc.Id): http.Request => {
        if (Revision.era(revision) === "stateless") {
          return http.modern(method, whole(revision, params, options), {
            id,
            _meta: whole(revision, params, options)._meta
          })
        }
        return { headers: { ...http.posting, ...session }, body: { jsonrpc: "2.0", id, method, params } }
      }
      const request = (method: string, params: Json = {}, id: JsonRpc.Id = ++ids): Effect.Effect<Json> =>
        Effect.scoped(Effect.gen(function*() {
          const answer = yield* http.open(at, asked(method, params, id))
          const sessionId = answer.headers["mcp-session-id"]
          if (typeof sessionId === "string") {
            session = { "mcp-session-id": sessionId, "mcp-protocol-version": revision }
          }
          if (answer.headers["content-type"] === "application/json") return JSON.parse(yield* answer.text)
          for (;;) {
            const message = yield* answer.message
            if (message.method === undefined) return message
            yield* took(message)
          }
        }))
      const client = withResults({
        revision,
        request,
        notify: (method, params) => post({ method, ...(params === undefined ? {} : { params }) }),
        respond: post,
        received: received.all,
        receive: (condition) => received.receive(condition)
      })
      yield* initialized(client, options)
      if (session["mcp-session-id"] !== undefined) {
        const stream = yield* http.open(at, { method: "GET", headers: { accept: "text/event-stream", ...session } })
        yield* Effect.forkScoped(Effect.forever(Effect.flatMap(stream.message, took)))
      }
      return client
    })
})

/** Sends a request, and retries it with the requested input until it is done. */
export const complete = (client: Client, method: string, params: Json, { answer }: Options): Effect.Effect<Json> =>
  Effect.gen(function*() {
    let message = yield* client.request(method, params)
    while (message.result?.resultType === "input_required") {
      const { inputRequests, requestState } = message.result
      const answers = Object.entries(inputRequests ?? {}).map(([key, question]) => [key, answer!(question)])
      message = yield* client.request(method, { ...params, inputResponses: Object.fromEntries(answers), requestState })
    }
    return message
  })

/** Every transport. */
export const all: ReadonlyArray<Transport> = [
  memory,
  stdio,
  streamable("HTTP"),
  streamable("HTTP, streams only", { alwaysStream: true }),
  legacy
]

/** Every transport in every revision that it has. */
export const each: ReadonlyArray<readonly [Transport, Revision.Revision]> = all.flatMap((transport) =>
  transport.revisions.map((revision) => [transport, revision] as const)
)
