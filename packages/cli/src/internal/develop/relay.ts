/**
 * Keeps a host connected while the server behind it is restarted. It passes messages on in both directions, and repeats
 * the handshake of the host at each new server.
 *
 * - **Handshake.** The relay stores `initialize`, the log level and the subscriptions of the host, and the open streams
 *   of `subscriptions/listen` (2026-07-28). A new server receives them before any other message, and its answers stay
 *   in the relay.
 * - **Changes.** Then the host gets the notifications that the lists have changed. The relay adds `listChanged` to the
 *   capabilities of the server, so that hosts listen for them.
 * - **Requests in progress** at a restart fail with an error that says so, if they can have effects (`tools/call`, tasks).
 *   Other ones, and those that arrive while the server starts, wait for it, up to `maxWaiting`.
 * - **Requests of the server** get ids of the relay: each server counts from the start again, and an answer to an old
 *   server must not reach the new one. At a restart the host gets their cancellation.
 * - **A server that does not run** is answered for: `initialize` succeeds, so that hosts stay connected, and other
 *   requests fail with the reason.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"

/** The key in the `_meta` of notifications that belong to a stream of `subscriptions/listen`. */
export const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

/** The part of a connection that a relay uses. */
export interface Output {
  readonly send: (message: JsonRpc.Outbound) => unknown
}

/** Options of {@link Relay}. */
export interface RelayOptions {
  /** The number of requests that wait while the server starts. A further one fails. */
  readonly maxWaiting: number
  /** Writes a line for the person. */
  readonly log: (line: string) => void
}

type State =
  | { readonly _tag: "Starting" }
  /** The new server answers the handshake. */
  | { readonly _tag: "Greeting"; readonly output: Output }
  | { readonly _tag: "Running"; readonly output: Output }
  | { readonly _tag: "Failed"; readonly reason: string }

/** The handshake of the host with the first server. */
interface Handshake {
  readonly params: JsonRpc.JsonObject | undefined
  readonly version: unknown
  readonly capabilities: string
  isInitialized: boolean
}

/** A request that the server has sent to the host. */
interface Asked {
  readonly id: JsonRpc.Id
  readonly token: unknown
}

const internalError = -32603
const methodNotFound = -32601

const object = (value: unknown): JsonRpc.JsonObject => JsonRpc.isObject(value) ? value : {}

const metaOf = (params: JsonRpc.JsonObject | undefined): JsonRpc.JsonObject => object(params?.["_meta"])

/** The lists that a client can be told about, with the notification of each. */
const lists = {
  tools: "notifications/tools/list_changed",
  prompts: "notifications/prompts/list_changed",
  resources: "notifications/resources/list_changed"
} as const

type List = keyof typeof lists

const names = Object.keys(lists) as ReadonlyArray<List>

/** The capabilities with the notifications of this relay. */
const withChanges = (capabilities: JsonRpc.JsonObject): JsonRpc.JsonObject => ({
  ...capabilities,
  ...Object.fromEntries(
    names.filter((name) => JsonRpc.isObject(capabilities[name]))
      .map((name) => [name, { ...object(capabilities[name]), listChanged: true }])
  )
})

/** The requests without effects: the next server gets them again, or this relay answers. */
const repeatable: ReadonlySet<string> = new Set([
  "initialize",
  "server/discover",
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe"
])

const isHandshake = ({ method }: JsonRpc.Request): boolean => method === "initialize" || method === "server/discover"

/** The capabilities in the place of those of a server that does not run. */
const provisional: JsonRpc.JsonObject = {
  logging: {},
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true }
}

/** A relay between one host and the servers that follow each other. */
export class Relay {
  readonly #host: Output
  readonly #log: (line: string) => void
  readonly #maxWaiting: number
  #state: State = { _tag: "Starting" }
  #generation = 0
  #counter = 0
  #handshake: Handshake | undefined
  #isProvisional = false
  #level: JsonRpc.JsonObject | undefined
  readonly #subscriptions = new Map<unknown, JsonRpc.JsonObject>()
  /** The streams of `subscriptions/listen`, by their ids. The value is whether the host knows that it is open. */
  readonly #listens = new Map<JsonRpc.Id, { readonly request: JsonRpc.Request; isAcknowledged: boolean }>()
  readonly #pending = new Map<JsonRpc.Id, JsonRpc.Request>()
  readonly #waiting = new Map<JsonRpc.Id, JsonRpc.Request>()
  readonly #asked = new Map<JsonRpc.Id, Asked>()
  /** The requests of this relay to the new server. */
  readonly #own = new Map<JsonRpc.Id, (message: JsonRpc.Success | JsonRpc.Failure) => void>()

  constructor(host: Output, { log, maxWaiting }: RelayOptions) {
    this.#host = host
    this.#log = log
    this.#maxWaiting = maxWaiting
  }

  /** Whether the server has answered the handshake. */
  get isRunning(): boolean {
    return this.#state._tag === "Running"
  }

  /** The handshake that the server has not answered: that of this relay, or that of the host. Each is another object. */
  get openHandshake(): object | undefined {
    if (this.#state._tag === "Greeting") return this.#state
    return this.#state._tag === "Running" ? [...this.#pending.values()].find(isHandshake) : undefined
  }

  /** Whether the host waits for a response of the server. */
  get isBusy(): boolean {
    return this.#pending.size > 0 || this.#waiting.size > 0
  }

  /** A server starts: what the host requests from now on waits for it. `why` completes "restarted because …". */
  starting(why: string): void {
    this.#end(`The server was restarted because ${why}, before it answered: send the request again`)
    this.#state = { _tag: "Starting" }
  }

  /** The server is not there, until the next start. */
  failed(reason: string): void {
    this.#end(`The server ended before it answered: ${reason}`)
    this.#state = { _tag: "Failed", reason }
    for (const request of [...this.#waiting.values()]) {
      this.#waiting.delete(request.id)
      this.#substitute(request, reason)
    }
  }

  /** A server has started: it gets the handshake, and then the requests that wait. */
  connected(output: Output): void {
    this.#generation++
    const handshake = this.#handshake
    if (handshake === undefined) return this.#run(output)
    this.#state = { _tag: "Greeting", output }
    this.#request(output, "initialize", { ...handshake.params, protocolVersion: handshake.version }, (answer) => {
      if (answer._tag === "Failure") return this.failed(`it refused the session: ${answer.error.message}`)
      const { capabilities, protocolVersion } = object(answer.result)
      if (protocolVersion !== handshake.version) {
        this.#log(
          `The server speaks ${String(protocolVersion)}, and the session ${
            String(handshake.version)
          }: connect the host again`
        )
      } else if (!this.#isProvisional && JSON.stringify(capabilities) !== handshake.capabilities) {
        this.#log("The capabilities of the server have changed: connect the host again to use them")
      }
      if (!handshake.isInitialized) return this.#run(output)
      output.send(JsonRpc.notification("notifications/initialized"))
      if (this.#level !== undefined) this.#request(output, "logging/setLevel", this.#level)
      for (const params of this.#subscriptions.values()) this.#request(output, "resources/subscribe", params)
      this.#run(output)
      const declared = this.#isProvisional ? provisional : object(capabilities)
      for (const name of names) {
        if (JsonRpc.isObject(declared[name])) this.#host.send(JsonRpc.notification(lists[name]))
      }
    })
  }

  /** A message of the host. */
  fromHost(message: JsonRpc.Inbound): void {
    switch (message._tag) {
      case "Batch":
        return message.members.forEach((member) => this.fromHost(member))
      case "Invalid":
        if (!message.answer && message.notification !== true) {
          this.#host.send(JsonRpc.failure(message.id, message.error))
        }
        return
      case "Request":
        return this.#fromHostRequest(message)
      case "Notification":
        return this.#fromHostNotification(message)
      default:
        return this.#answer(message)
    }
  }

  /** A message of the server that has connected last. */
  fromServer(message: JsonRpc.Inbound): void {
    switch (message._tag) {
      case "Batch":
        return message.members.forEach((member) => this.fromServer(member))
      case "Invalid":
        return this.#log(`The server wrote a line that is not a message: ${message.error.message}`)
      case "Request": {
        const id = `${this.#generation}:${++this.#counter}`
        this.#asked.set(id, { id: message.id, token: metaOf(message.params)["progressToken"] })
        return void this.#host.send({ ...message, id })
      }
      case "Notification":
        return this.#fromServerNotification(message)
      default:
        return this.#response(message)
    }
  }

  #run(output: Output): void {
    this.#state = { _tag: "Running", output }
    for (const { request } of this.#listens.values()) {
      output.send(request)
      this.#announce(request)
    }
    for (const request of [...this.#waiting.values()]) {
      this.#waiting.delete(request.id)
      this.#forward(request, output)
    }
  }

  /** Notifies a stream of `subscriptions/listen` of the lists that it listens to, from the second server on. */
  #announce({ id, params }: JsonRpc.Request): void {
    if (this.#generation === 1) return
    const filter = object(params?.["notifications"])
    for (const name of names) {
      if (filter[`${name}ListChanged`] !== true) continue
      this.#host.send(JsonRpc.notification(lists[name], { _meta: { [subscriptionKey]: id } }))
    }
  }

  /** Ends the requests and streams of the present server. */
  #end(reason: string): void {
    this.#own.clear()
    for (const id of this.#asked.keys()) {
      this.#host.send(JsonRpc.notification("notifications/cancelled", { requestId: id, reason: "the server ended" }))
    }
    this.#asked.clear()
    for (const request of [...this.#pending.values()]) {
      this.#pending.delete(request.id)
      if (repeatable.has(request.method)) this.#waiting.set(request.id, request)
      else this.#host.send(JsonRpc.failure(request.id, { code: internalError, message: reason }))
    }
  }

  #request(
    output: Output,
    method: string,
    params: JsonRpc.JsonObject,
    then?: (answer: JsonRpc.Success | JsonRpc.Failure) => void
  ): void {
    const id = `skein-dev:${++this.#counter}`
    this.#own.set(id, (answer) => {
      if (then !== undefined) return then(answer)
      if (answer._tag === "Failure") this.#log(`The server refused ${method}: ${answer.error.message}`)
    })
    output.send(JsonRpc.request(id, method, params))
  }

  #fromHostRequest(request: JsonRpc.Request): void {
    const { method, params } = request
    if (method === "logging/setLevel" && params !== undefined) this.#level = params
    if (method === "resources/subscribe" && params !== undefined) this.#subscriptions.set(params["uri"], params)
    if (method === "resources/unsubscribe") this.#subscriptions.delete(params?.["uri"])
    switch (this.#state._tag) {
      case "Running":
        return this.#forward(request, this.#state.output)
      case "Failed":
        return this.#substitute(request, this.#state.reason)
      default:
        if (method === "subscriptions/listen") {
          return void this.#listens.set(request.id, { request, isAcknowledged: false })
        }
        if (this.#waiting.size < this.#maxWaiting) return void this.#waiting.set(request.id, request)
        return void this.#host.send(JsonRpc.failure(request.id, {
          code: internalError,
          message:
            `The server starts, and ${this.#maxWaiting} requests wait for it already: send the request again later`
        }))
    }
  }

  #forward(request: JsonRpc.Request, output: Output): void {
    if (request.method === "subscriptions/listen") {
      this.#listens.set(request.id, { request, isAcknowledged: false })
    } else this.#pending.set(request.id, request)
    output.send(request)
  }

  /** Answers in the place of a server that does not run. */
  #substitute(request: JsonRpc.Request, reason: string): void {
    const { id, method, params } = request
    const succeed = (result: JsonRpc.JsonObject = {}): void => void this.#host.send(JsonRpc.success(id, result))
    switch (method) {
      case "initialize": {
        const asked = Revision.read(params?.["protocolVersion"])
        const version = asked !== undefined && Revision.era(asked) === "session" ? asked : Revision.latestSession
        this.#handshake = { params, version, capabilities: "", isInitialized: false }
        this.#isProvisional = true
        return succeed({
          protocolVersion: version,
          capabilities: provisional,
          serverInfo: { name: "skein dev", version: "0" },
          instructions: `The server does not run: ${reason}`
        })
      }
      case "ping":
      case "logging/setLevel":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return succeed()
      case "subscriptions/listen":
        return void this.#listens.set(id, { request, isAcknowledged: false })
      default: {
        const message = `The server does not run: ${reason}. It starts again when a file changes`
        // A client that looks for 2026-07-28 opens a session then, which this relay can answer.
        const code = method === "server/discover" ? methodNotFound : internalError
        return void this.#host.send(JsonRpc.failure(id, { code, message }))
      }
    }
  }

  #fromHostNotification(notification: JsonRpc.Notification): void {
    const { method, params } = notification
    const requestId = params?.["requestId"]
    if (method === "notifications/initialized" && this.#handshake !== undefined) this.#handshake.isInitialized = true
    if (method === "notifications/cancelled" && JsonRpc.isId(requestId)) {
      this.#listens.delete(requestId)
      if (this.#waiting.delete(requestId)) return
    }
    // The progress of a request that an old server has sent.
    if (method === "notifications/progress") {
      const token = params?.["progressToken"]
      if (![...this.#asked.values()].some((asked) => asked.token === token)) return
    }
    if (this.#state._tag === "Running") this.#state.output.send(notification)
  }

  /** The answer of the host to a request of the server. */
  #answer(message: JsonRpc.Success | JsonRpc.Failure): void {
    const asked = message.id === undefined ? undefined : this.#asked.get(message.id)
    if (asked === undefined || this.#state._tag !== "Running") return
    this.#asked.delete(message.id!)
    this.#state.output.send({ ...message, id: asked.id })
  }

  #fromServerNotification(notification: JsonRpc.Notification): void {
    const { method, params } = notification
    if (method === "notifications/cancelled") {
      for (const [id, asked] of this.#asked) {
        if (asked.id !== params?.["requestId"]) continue
        this.#asked.delete(id)
        return void this.#host.send({ ...notification, params: { ...params, requestId: id } })
      }
    }
    if (method === "notifications/subscriptions/acknowledged") {
      const id = metaOf(params)[subscriptionKey]
      const listen = JsonRpc.isId(id) ? this.#listens.get(id) : undefined
      if (listen?.isAcknowledged === true) return
      if (listen !== undefined) listen.isAcknowledged = true
    }
    this.#host.send(notification)
  }

  #response(message: JsonRpc.Success | JsonRpc.Failure): void {
    const { id } = message
    const own = id === undefined ? undefined : this.#own.get(id)
    if (own !== undefined) {
      this.#own.delete(id!)
      return own(message)
    }
    if (id !== undefined && this.#listens.delete(id)) return void this.#host.send(message)
    const request = id === undefined ? undefined : this.#pending.get(id)
    if (request === undefined) return
    this.#pending.delete(id!)
    if (!isHandshake(request) || message._tag === "Failure" || message.result instanceof JsonRpc.Encoded) {
      return void this.#host.send(message)
    }
    const { result } = message
    const capabilities = object(result["capabilities"])
    if (request.method === "initialize") {
      this.#handshake = {
        params: request.params,
        version: result["protocolVersion"],
        capabilities: JSON.stringify(capabilities),
        isInitialized: false
      }
      this.#isProvisional = false
    }
    this.#host.send({ ...message, result: { ...result, capabilities: withChanges(capabilities) } })
  }
}
