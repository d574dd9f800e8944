/**
 * Helpers of the tests of input requests: a client that gives the same input in both eras, by responding to requests of
 * the server and by retrying its own. Every message of the server is validated against the official schemas of the
 * revision.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import type { Connection, Principal } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type * as Peer from "@skein/runtime/Peer"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Exceptions from "../../../protocol/test/oracle/Exceptions.ts"
import * as Spec from "../../../protocol/test/oracle/Spec.ts"
import * as Validate from "../../../protocol/test/oracle/Validate.ts"
import * as kit from "../kit.ts"

export type Json = kit.Json

/** An input request as the client receives it, in both eras. */
export interface Question {
  readonly method: string
  readonly params: Json
  /** Its key in the stateless revision. */
  readonly key?: string
}

/** Answers an input request with a result, with an error (session era only), or not at all. */
export type Answerer = (question: Question) => Json | { readonly error: JsonRpc.ErrorObject } | undefined

/** Accepts every form, with the content. */
export const accept = (content: Json): Json => ({ action: "accept", content })

export const everything = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: { listChanged: true }
}

/** The capabilities that clients can declare in a revision. */
export const capabilitiesOf = (revision: Revision.Revision): JsonRpc.JsonObject => {
  const { elicitation, roots, sampling } = everything
  if (revision >= "2026-07-28") return { elicitation, sampling, roots: {} }
  if (revision >= "2025-11-25") return { elicitation, sampling, roots }
  return revision >= "2025-06-18" ? { elicitation: {}, sampling: {}, roots } : { sampling: {}, roots }
}

const requests: { readonly [method: string]: string } = {
  "elicitation/create": "ElicitRequest",
  "sampling/createMessage": "CreateMessageRequest",
  "roots/list": "ListRootsRequest",
  "tasks/get": "GetTaskRequest",
  "tasks/result": "GetTaskPayloadRequest",
  "tasks/cancel": "CancelTaskRequest"
}

/** Throws the faults of a value by the official schema. */
export const conform = (revision: Revision.Revision, definition: string, value: unknown): void => {
  if (!Spec.present) return
  const refusal = Validate.refusal(Exceptions.load(revision), definition, value)
  if (refusal !== undefined) throw new Error(`${revision} ${definition}: ${refusal}\n${JSON.stringify(value)}`)
}

export interface Options {
  readonly revision: Revision.Revision
  readonly answer?: Answerer
  readonly capabilities?: JsonRpc.JsonObject
  readonly principal?: Principal
}

/** A client that answers input requests. */
export class Client {
  readonly peer: Peer.Peer
  readonly revision: Revision.Revision
  readonly capabilities: JsonRpc.JsonObject
  answer: Answerer
  principal: Principal | undefined
  /** The input requests of the server, in order. */
  readonly asked: Array<Question> = []
  /** All received messages, in order. */
  readonly received: Array<Json> = []
  /** The number of the client's requests. */
  sent = 0
  readonly #connection: Effect.Success<ReturnType<typeof InMemoryTransport.make>>[1]
  readonly #waiting = new Map<JsonRpc.Id, (message: Json) => void>()

  constructor(connection: Client["connection"], peer: Peer.Peer, options: Options) {
    this.#connection = connection
    this.peer = peer
    this.revision = options.revision
    this.capabilities = options.capabilities ?? capabilitiesOf(options.revision)
    this.answer = options.answer ?? (() => undefined)
    this.principal = options.principal
    connection.open({
      message: (inbound) => this.#receive(JSON.parse(JsonRpc.encode(inbound as JsonRpc.Outbound))),
      end: () => {}
    })
  }

  get connection() {
    return this.#connection
  }

  #receive(message: Json): void {
    this.received.push(message)
    if (message.method === undefined) return this.#waiting.get(message.id)?.(message)
    if (message.id === undefined) return
    conform(
      this.revision,
      requests[message.method]!,
      Spec.present && this.revision < "2025-11-25" ? bare(message) : message
    )
    const answer = this.#ask(message)
    if (answer === undefined) return
    this.#connection.send(
      "error" in answer ? JsonRpc.failure(message.id, answer.error) : JsonRpc.success(message.id, answer)
    )
  }

  #ask({ method, params }: Json, key?: string): Json {
    const question = { method, params, ...(key === undefined ? undefined : { key }) }
    this.asked.push(question)
    return this.answer(question)
  }

  /** Sends a request with the metadata of the revision, and does not wait. */
  send(method: string, params: Json = {}): JsonRpc.Id {
    const id = ++this.sent
    const session = Revision.era(this.revision) === "session"
    const _meta = session ? undefined : {
      ...kit.meta(),
      "io.modelcontextprotocol/clientCapabilities": this.capabilities,
      ...params._meta
    }
    this.#connection.send({ _tag: "Request", id, method, params: session ? params : { ...params, _meta } })
    return id
  }

  notify(method: string, params: JsonRpc.JsonObject): void {
    this.#connection.send({ _tag: "Notification", method, params })
  }

  /** Sends a request, and returns its response of any kind. */
  once(method: string, params?: Json): Effect.Effect<Json> {
    return Effect.callback<Json>((resume) => {
      const id = this.send(method, params)
      const found = this.received.find((message) => message.id === id && message.method === undefined)
      if (found !== undefined) return resume(Effect.succeed(this.#checked(method, found)))
      this.#waiting.set(id, (message) => resume(Effect.sync(() => this.#checked(method, message))))
    })
  }

  #checked(method: string, message: Json): Json {
    if (message.result?.resultType !== "input_required") {
      kit.validate(this.revision, method, message)
      return message
    }
    conform(this.revision, "InputRequiredResult", message.result)
    for (const request of Object.values<Json>(message.result.inputRequests)) {
      conform(this.revision, requests[request.method]!, request)
    }
    return message
  }

  /** Answers the input requests of an `input_required` result. */
  responses({ inputRequests }: Json): Json {
    const entries = Object.entries<Json>(inputRequests).map(([key, request]) => [key, this.#ask(request, key)])
    return Object.fromEntries(entries.filter(([, answer]) => answer !== undefined))
  }

  /** Sends a request, and retries it with the requested input until it is done. */
  request(method: string, params: Json = {}): Effect.Effect<Json> {
    return Effect.gen({ self: this }, function*() {
      let message = yield* this.once(method, params)
      while (message.result?.resultType === "input_required") {
        const inputResponses = this.responses(message.result)
        message = yield* this.once(method, { ...params, inputResponses, requestState: message.result.requestState })
      }
      return message
    })
  }

  /** The text of a tool's result, or its error. */
  call(name: string, args?: Json): Effect.Effect<string> {
    return Effect.map(
      this.request("tools/call", { name, ...(args === undefined ? undefined : { arguments: args }) }),
      textOf
    )
  }

  notices(method: string): ReadonlyArray<Json> {
    return this.received.filter((message) => message.method === method)
  }
}

/** Before 2025-11-25 the official schemas describe a request without the envelope. */
const bare = ({ method, params }: Json): Json => params === undefined ? { method } : { method, params }

/** The outcome of a call in one line. */
export const textOf = ({ error, result }: Json): string =>
  error !== undefined
    ? `${error.code} ${error.message}`
    : `${result.isError === true ? "failed: " : ""}${result.content.map(({ text }: Json) => text).join("")}`

/** A connection whose application knows the principal. */
const identified = (connection: Connection, principal: () => Principal | undefined): Connection => ({
  open: (receiver) =>
    connection.open({
      message: (message) => receiver.message(message, { principal: principal() }),
      end: (end) => receiver.end(end)
    }),
  send: (message, about) => connection.send(message, about),
  drained: Effect.suspend(() => connection.drained),
  close: Effect.suspend(() => connection.close)
})

/** Connects a client to a server that is already built. */
export const connect = (options: Options): Effect.Effect<Client, never, McpServer.McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const [near, far] = yield* InMemoryTransport.make()
    const client: Client = new Client(far, yield* server.serve(identified(near, () => client.principal)), options)
    if (Revision.era(options.revision) === "session") {
      yield* client.once("initialize", { ...kit.hello(options.revision), capabilities: client.capabilities })
      client.notify("notifications/initialized", {})
    }
    return client
  })

/** Builds a server for the duration of a test, and connects a client to it. */
export const client = (server: kit.Server, options: Options): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.flatMap(Effect.orDie(Layer.build(server)), (context) => Effect.provide(connect(options), context))

/** A server with one tool, `t`. */
export const tool = <E extends HandlerError>(handler: Effect.Effect<string, E, McpRequest>) =>
  kit.server(Tool.layer(Tool.make("t"), () => handler))
