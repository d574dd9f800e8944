/** A server that answers with hostile messages, and sends hostile requests and notifications. */
import * as Method from "@skein/protocol/Method"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import * as Hostile from "./hostileJson.ts"
import * as Samples from "./samples.ts"
import type { Report } from "./target.ts"
import { TextConnection } from "./textConnection.ts"

type Json = Hostile.Anything

const capabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
  extensions: { "io.modelcontextprotocol/tasks": {} }
}

/** The result of the handshake. */
const handshake = (random: Random.Random, revision: Revision.Revision, method: string): Json => {
  const serverInfo = {
    name: Samples.escapes,
    version: "1",
    title: Samples.escapes,
    icons: [{ src: "javascript:alert(1)", sizes: random.pick([["1x1"], "any", 1]) }]
  }
  const instructions = random.pick([undefined, Samples.escapes, "x".repeat(20_000)])
  return method === "initialize"
    ? { protocolVersion: revision, capabilities, serverInfo, instructions }
    : {
      resultType: "complete",
      supportedVersions: [revision],
      capabilities,
      instructions,
      ttlMs: 0,
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo }
    }
}

/** A server that answers with hostile messages until it is `honest`. */
export class HostileServer {
  readonly #random: Random.Random
  readonly #revision: Revision.Revision
  readonly #report: Report
  readonly taskId: string
  isHonest = false
  connection = new TextConnection()
  /** Whether the client has ended the connection. */
  isClosed = false
  /** The ids of the requests that the client may answer, and of those that it has answered. */
  readonly #asked = new Set<unknown>()
  readonly #answered = new Set<unknown>()
  // The ids that the server has sent more than once.
  readonly #ambiguous = new Set<unknown>()
  readonly #tokens: Array<unknown> = [1, "x"]
  readonly #subscriptions: Array<unknown> = []
  #id = 0
  lastAnswered = false

  constructor(random: Random.Random, revision: Revision.Revision, report: Report) {
    this.#random = random
    this.#revision = revision
    this.#report = report
    this.taskId = random.pick(["task", "task", Samples.escapes, "x".repeat(5_000)])
  }

  get transport(): Transport {
    return {
      connect: Effect.acquireRelease(
        Effect.sync(() => {
          this.connection.onText = (text) => this.#receive(text)
          return this.connection
        }),
        (connection) => Effect.andThen(connection.close, Effect.sync(() => void (this.isClosed = true)))
      )
    }
  }

  #receive(text: string): void {
    let message: Json
    try {
      message = JSON.parse(text)
    } catch {
      return this.#report(`the client sent a message that is not JSON: ${text.slice(0, 300)}`)
    }
    for (const one of Array.isArray(message) ? message : [message]) this.#one(one)
  }

  #one(message: Json): void {
    if (message.method === undefined) {
      if (message.id === "last") this.lastAnswered = true
      if (message.error?.data?.reference !== undefined) {
        this.#report(`${this.#revision}: internal error of the client: ${JSON.stringify(message).slice(0, 500)}`)
      }
      if (message.id !== undefined && this.#asked.has(message.id)) {
        if (this.#answered.has(message.id) && !this.#ambiguous.has(message.id)) {
          this.#report(`the request ${String(message.id)} was answered twice`)
        }
        this.#answered.add(message.id)
      }
      return
    }
    const token = message.params?._meta?.progressToken
    if (token !== undefined) this.#tokens.push(token)
    if (message.id === undefined) return
    if (message.method === "subscriptions/listen") this.#subscriptions.push(message.id)
    this.#answer(message)
  }

  #deliver(message: Json): void {
    const text = Hostile.stringify(message)
    this.connection.deliver(
      !this.isHonest && this.#random.chance(0.02) ? Hostile.garble(this.#random, text, Hostile.jsonPieces) : text
    )
  }

  #answer({ id, method, params }: Json): void {
    const random = this.#random
    const revision = this.#revision
    const isHandshake = method === "initialize" || method === "server/discover"
    if (method === "server/discover" && revision !== "2026-07-28") {
      return this.#deliver({ jsonrpc: "2.0", id, error: { code: -32_601, message: "Method not found" } })
    }
    const isFirst = isHandshake && !this.isHonest
    let result: Json = isHandshake
      ? handshake(random, revision, method)
      : method === "ping"
      ? {}
      : Samples.result(random, revision, method, this.taskId)
    if (this.isHonest) return this.#deliver({ jsonrpc: "2.0", id, result })
    if (method === "subscriptions/listen" && random.chance(0.8)) {
      const _meta = { "io.modelcontextprotocol/subscriptionId": id }
      const acknowledged = {
        jsonrpc: "2.0",
        method: "notifications/subscriptions/acknowledged",
        params: { _meta, notifications: params?.notifications }
      }
      return this.#deliver(random.chance(0.5) ? acknowledged : Hostile.damage(random, acknowledged))
    }
    if (random.chance(isFirst ? 0.3 : 0.7)) result = Hostile.damage(random, result)
    if (random.chance(0.3)) { for (let count = random.below(4); count > 0; count--) this.say() }
    const error = {
      code: random.pick([-32_601, -32_602, -32_603, -32_042, -32_002, -32_020, -1, 404, 1e300]),
      message: random.pick([Samples.escapes, "MCP error -32601: Method not found", "x".repeat(20_000)]),
      data: random.pick([
        undefined,
        { uri: Samples.escapes, supported: ["x"], requested: Samples.escapes },
        {
          elicitations: [{ mode: "url", message: "m", url: "https://a/", elicitationId: "e" }],
          requiredCapabilities: {}
        }
      ])
    }
    const answer = random.chance(isFirst ? 0.03 : 0.12)
      ? { jsonrpc: "2.0", id, error: random.chance(0.5) ? error : Hostile.damage(random, error) }
      : { jsonrpc: "2.0", id, result }
    if (random.chance(0.03)) return
    const last = random.chance(0.04) ? Hostile.damage(random, answer) : answer
    this.#deliver(revision === "2025-03-26" && random.chance(0.1) ? [last, answer] : last)
    if (random.chance(0.05)) this.#deliver(answer)
  }

  /** Sends an unsolicited request or notification. */
  say(): void {
    const random = this.#random
    const revision = this.#revision
    let message: Json
    if (random.chance(0.35)) {
      const isFresh = random.chance(0.9)
      const id = isFresh ? `s${++this.#id}` : random.pick([null, 0, "s1", 1.5, {}])
      ;(isFresh ? this.#asked : this.#ambiguous).add(id)
      const request = random.chance(0.6)
        ? Samples.inputRequest(random, revision)
        : ((method) => ({ method: method.name, params: Samples.written(random, method, revision, "params") }))(
          random.pick(Method.requests)
        )
      if (revision === "2025-11-25" && random.chance(0.3)) {
        request.params = { ...request.params, task: { ttl: random.pick([1_000, 0, -1, 1e300]) } }
      }
      message = { jsonrpc: "2.0", id, ...request }
    } else {
      const method = random.pick(Method.notifications)
      const params: Json = { ...Samples.written(random, method, revision, "params") as object }
      if (method.name === "notifications/progress") {
        Object.assign(params, { progressToken: random.pick(this.#tokens), progress: random.pick([1, 2, -1, 1e308]) })
      }
      if (method.name.startsWith("notifications/tasks")) {
        Object.assign(params, Samples.task(random, revision, this.taskId))
      }
      if (method.name === "notifications/cancelled") params.requestId = random.pick([`s${this.#id}`, 1, null])
      if (this.#subscriptions.length > 0) {
        params._meta = { ...params._meta, "io.modelcontextprotocol/subscriptionId": random.pick(this.#subscriptions) }
      }
      message = { jsonrpc: "2.0", method: method.name, params }
    }
    if (random.chance(0.6)) message = { ...message, params: Hostile.damage(random, message.params) }
    if (random.chance(0.05)) {
      message = Hostile.damage(random, message)
      this.#ambiguous.add(message?.id)
    }
    this.#deliver(message)
  }

  ping(): void {
    this.#deliver({ jsonrpc: "2.0", id: "last", method: "ping" })
  }
}
