/**
 * Helpers of the server's tests: connect a server layer to a client that speaks raw JSON-RPC in any revision. Every
 * response is validated against the official schema of the request's revision, if there is one.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as MetaKey from "@skein/protocol/MetaKey"
import * as Revision from "@skein/protocol/Revision"
import type { Connection, Principal, Receiver } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type * as Peer from "@skein/runtime/Peer"
import type * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import * as oracle from "./oracle.ts"
import type { Json } from "./oracle.ts"

export { type Json, validated } from "./oracle.ts"

/** Throws the faults of a response by the official schema. */
export const validate = oracle.answer

/** The `_meta` of a stateless request. */
export const meta = (version: string = Revision.latest): JsonRpc.JsonObject => ({
  "io.modelcontextprotocol/protocolVersion": version,
  "io.modelcontextprotocol/clientInfo": { name: "kit", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {}
})

/** A client that speaks raw JSON-RPC. */
export class Client {
  readonly peer: Peer.Peer
  /** The revision of the requests. Those of the stateless revision have `_meta`. */
  revision: Revision.Revision
  /** All received messages, in order. */
  readonly received: Array<Json> = []
  readonly #connection: Effect.Success<ReturnType<typeof InMemoryTransport.make>>[1]
  readonly #waiting = new Map<JsonRpc.Id, (message: Json) => void>()
  readonly #asked = new Map<JsonRpc.Id, { readonly method: string; readonly revision: Revision.Revision }>()
  // The number of messages that were validated.
  #looked = 0
  #id = 0

  constructor(
    connection: Effect.Success<ReturnType<typeof InMemoryTransport.make>>[1],
    peer: Peer.Peer,
    revision: Revision.Revision
  ) {
    this.#connection = connection
    this.peer = peer
    this.revision = revision
    connection.open({
      message: (inbound) => {
        const message = JSON.parse(JsonRpc.encode(inbound as JsonRpc.Outbound))
        this.received.push(message)
        this.#waiting.get(message.id)?.(message)
      },
      end: () => {}
    })
  }

  /** Sends a request unchanged, and does not wait. */
  sendRaw(method: string, params?: unknown, id: JsonRpc.Id = ++this.#id): JsonRpc.Id {
    this.#asked.set(id, { method, revision: this.revision })
    this.#connection.send({ _tag: "Request", id, method, params: params as JsonRpc.JsonObject })
    return id
  }

  /** Sends a request in the client's revision, and does not wait. */
  send(method: string, params: Json = {}): JsonRpc.Id {
    if (Revision.era(this.revision) === "session") return this.sendRaw(method, params)
    return this.sendRaw(method, { ...params, _meta: { ...meta(), ...params._meta } })
  }

  /** Sends a response with any id. */
  answerRaw(message: JsonRpc.Success | JsonRpc.Failure): void {
    this.#connection.send(message)
  }

  notify(method: string, params?: JsonRpc.JsonObject): void {
    this.#connection.send({ _tag: "Notification", method, params })
  }

  /** Throws the faults of the server's messages other than responses by the official schema. */
  #look(): void {
    for (; this.#looked < this.received.length; this.#looked++) {
      const message = this.received[this.#looked]
      if (message.method === undefined) continue
      const listens = message.params?._meta?.["io.modelcontextprotocol/subscriptionId"] !== undefined
      oracle.serverMessage(listens ? Revision.latest : this.revision, message)
    }
  }

  /** Waits for the response to a sent request. */
  answer(id: JsonRpc.Id): Effect.Effect<Json> {
    return Effect.map(
      Effect.callback<Json>((resume) => {
        const found = this.answers(id)[0]
        if (found !== undefined) return resume(Effect.succeed(found))
        this.#waiting.set(id, (message) => resume(Effect.succeed(message)))
      }),
      (message) => {
        this.#look()
        const { method, revision } = this.#asked.get(id)!
        const known = method in oracle.results || (revision === "2025-11-25" && method.startsWith("tasks/"))
        if (known || message.error !== undefined) validate(revision, method, message)
        return message
      }
    )
  }

  /** Sends a request in the client's revision, and returns the complete response. */
  request(method: string, params?: Json): Effect.Effect<Json> {
    return Effect.suspend(() => this.answer(this.send(method, params)))
  }

  /** The same for an unchanged request. */
  requestRaw(method: string, params?: unknown): Effect.Effect<Json> {
    return Effect.suspend(() => this.answer(this.sendRaw(method, params)))
  }

  /** Returns the result of a request, and dies if it is an error. */
  result(method: string, params?: Json): Effect.Effect<Json> {
    return Effect.flatMap(this.request(method, params), (message) =>
      message.error === undefined
        ? Effect.succeed(message.result)
        : Effect.die(new Error(`${method}: ${JSON.stringify(message.error)}`)))
  }

  /** Returns the error of a request, and dies if it is a result. */
  error(method: string, params?: Json): Effect.Effect<Json> {
    return Effect.flatMap(this.request(method, params), (message) =>
      message.error === undefined
        ? Effect.die(new Error(`${method}: ${JSON.stringify(message.result)}`))
        : Effect.succeed(message.error))
  }

  call(name: string, args?: Json): Effect.Effect<Json> {
    return this.result("tools/call", args === undefined ? { name } : { name, arguments: args })
  }

  /** Calls a tool whose handler dies, and returns the reference. Dies for any other answer. */
  defect(name: string, args?: Json): Effect.Effect<string> {
    return Effect.map(this.call(name, args), (result) => referenceOf(result, name))
  }

  answers(id: JsonRpc.Id): ReadonlyArray<Json> {
    return this.received.filter((message) => message.id === id && message.method === undefined)
  }

  notices(method: string): ReadonlyArray<Json> {
    return this.received.filter((message) => message.method === method)
  }

  /** All entries of a listing, page by page, and the number of pages. */
  all(method: string, key: string): Effect.Effect<{ readonly entries: ReadonlyArray<Json>; readonly pages: number }> {
    return Effect.gen({ self: this }, function*() {
      const entries: Array<Json> = []
      let pages = 0
      for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
        const page: Json = yield* this.result(method, cursor === undefined ? {} : { cursor })
        entries.push(...page[key])
        cursor = page.nextCursor
        if (pages > 1000) throw new Error(`${method} does not end`)
      }
      return { entries, pages }
    })
  }
}

/** The reference of a result for a handler that has died. Throws if the result says anything else. */
export const referenceOf = ({ _meta, content, isError, structuredContent }: Json, name: string): string => {
  const reference = _meta?.[MetaKey.reference]
  const text = content[0].text.replace("The call may be tried again. ", "")
  const isExpected = isError === true && /^[\da-f-]{36}$/.test(reference) && structuredContent === undefined &&
    content.length === 1 &&
    text ===
      `The tool ${name} failed unexpectedly. The log of the server has the cause, with the reference ${reference}`
  if (!isExpected) throw new Error(`not the result of a defect: ${JSON.stringify(content)}`)
  return reference
}

/** The params of `initialize`. */
export const hello = (protocolVersion: string): JsonRpc.JsonObject => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: "kit", version: "1" }
})

/** Connects the server to a client. No message is sent yet. */
export const link = (
  revision: Revision.Revision = Revision.latest
): Effect.Effect<Client, never, McpServer.McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const [near, far] = yield* InMemoryTransport.make()
    return new Client(far, yield* server.serve(near), revision)
  })

/** The server's side of a connection whose client stops reading for a while. */
export class SlowReader implements Connection {
  readonly #connection: Connection
  readonly #held: Array<JsonRpc.Outbound> = []
  readonly #reads = Latch.makeUnsafe(true)
  readonly #highWaterMark: number
  readonly close: Effect.Effect<void>

  constructor(connection: Connection, highWaterMark: number) {
    this.#connection = connection
    this.#highWaterMark = highWaterMark
    this.close = connection.close
  }

  open(receiver: Receiver): void {
    this.#connection.open(receiver)
  }

  send(message: JsonRpc.Outbound): boolean {
    if (this.#reads.isOpen()) return this.#connection.send(message)
    return this.#held.push(message) < this.#highWaterMark
  }

  get drained(): Effect.Effect<void> {
    return this.#reads.await
  }

  pause(): void {
    this.#reads.closeUnsafe()
  }

  resume(): void {
    for (const message of this.#held.splice(0)) this.#connection.send(message)
    this.#reads.openUnsafe()
  }
}

/** Connects the server to a client whose messages have a principal. No message is sent yet. */
export const linkAs = (
  server: McpServer.McpServer["Service"],
  principal: Principal | undefined,
  revision: Revision.Revision = Revision.latest
): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.gen(function*() {
    const [near, far] = yield* InMemoryTransport.make()
    const peer = yield* server.serve({
      open: (receiver) =>
        near.open({
          message: (inbound) => receiver.message(inbound, { principal }),
          end: (end) => receiver.end(end)
        }),
      send: (message) => near.send(message),
      drained: near.drained,
      close: near.close
    })
    return new Client(far, peer, revision)
  })

/** Connects the server to a client, and initializes a session in session-based revisions. */
export const connect = (
  revision: Revision.Revision = Revision.latest
): Effect.Effect<Client, never, McpServer.McpServer | Scope.Scope> =>
  Effect.tap(link(revision), (client) =>
    Revision.era(revision) === "stateless"
      ? Effect.void
      : Effect.map(client.result("initialize", hello(revision)), () => client.notify("notifications/initialized")))

/** The services of a server's layer. */
export type Server = Layer.Layer<McpServer.McpServer | Catalog.Catalog, unknown>

/** Builds a server for the duration of a test, and connects a client to it. */
export const client = (
  server: Server,
  revision: Revision.Revision = Revision.latest
): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.flatMap(Effect.orDie(Layer.build(server)), (context) => Effect.provide(connect(revision), context))

/** A server called `test` with these definitions. */
export const server = <const L extends ReadonlyArray<McpServer.Definitions>>(...definitions: L) =>
  McpServer.layer({ name: "test", version: "1.0.0" }, ...definitions)

/** Runs everything that can run now: microtasks, immediates and the fibers behind them. */
export const settle: Effect.Effect<void> = Effect.gen(function*() {
  for (let turn = 0; turn < 5; turn++) {
    yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
  }
})

/** Returns the error of a layer that cannot be built, and dies if it can. */
export const failure = <A, E>(layer: Layer.Layer<A, E>): Effect.Effect<E> =>
  Effect.scoped(Effect.flip(Effect.flatMap(Layer.build(layer), () => Effect.die(new Error("it was built")))) as never)

/** Runs an effect with a logger that stores every line, with its cause. */
export const logged = <A, E, R>(
  f: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ cause, message }) => {
      lines.push(`${String(message)} ${Cause.pretty(cause)}`)
    })
    return Effect.provide(f(lines), Logger.layer([logger]))
  })

/** The current context, for values that are built by hand. */
export const here: Effect.Effect<Context.Context<never>> = Effect.context<never>()
