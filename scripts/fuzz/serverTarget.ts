/** A server that reads hostile requests, notifications and responses of a client, in every revision. */
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import * as Hostile from "./hostileJson.ts"
import { written } from "./samples.ts"
import * as Server from "./server.ts"
import { errorLogger, observed, type Report, settle, type Target } from "./target.ts"
import { TextConnection } from "./textConnection.ts"

type Json = Hostile.Anything

const capabilities = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
  tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } },
  extensions: { "io.modelcontextprotocol/tasks": {} },
  experimental: { a: {} }
}

const clientInfo = { name: "fuzz", version: "1" }

/** Params that reach a handler. */
const targeted = (random: Random.Random, method: string, value: unknown): unknown => {
  const params = { ...value as object } as Json
  switch (method) {
    case "tools/call":
      return { ...params, name: random.pick(Server.toolNames), arguments: { x: random.chance(0.5) ? { a: {} } : [] } }
    case "prompts/get":
      return { ...params, name: random.pick(["prompt", "asking"]), arguments: { x: "a" } }
    case "resources/read":
    case "resources/subscribe":
    case "resources/unsubscribe":
      return { ...params, uri: random.pick(["test://page/1", "test://asking", "test://item/1?q=2&r=3", "test://none"]) }
    case "completion/complete":
      return random.chance(0.5)
        ? { ...params, ref: { type: "ref/prompt", name: "prompt" }, argument: { name: "x", value: "a" } }
        : {
          ...params,
          ref: { type: "ref/resource", uri: "test://item/{id}{?q,r*}" },
          argument: { name: "id", value: "1" }
        }
    default:
      return params
  }
}

/** The metadata of a stateless request. */
const meta = (version: string) => ({
  [RequestMeta.protocolVersion]: version,
  [RequestMeta.clientInfo]: clientInfo,
  [RequestMeta.clientCapabilities]: capabilities,
  [RequestMeta.logLevel]: "debug",
  progressToken: "p"
})

/** A request or a notification with damaged members. */
const hostileMessage = (
  random: Random.Random,
  revision: Revision.Revision,
  id: number,
  taskIds: ReadonlyArray<string>
): Json => {
  const isRequest = random.chance(0.85)
  const method = isRequest
    ? random.pick(random.chance(0.3) ? Method.requests.filter(({ name }) => name === "tools/call") : Method.requests)
    : random.pick(Method.notifications)
  let params: Json = targeted(random, method.name, written(random, method, revision, "params"))
  if (method.name.startsWith("tasks/") && taskIds.length > 0) params.taskId = random.pick(taskIds)
  if (revision === "2026-07-28" || random.chance(0.03)) params._meta = meta("2026-07-28")
  if (revision === "2025-11-25" && random.chance(0.2)) params.task = { ttl: 1_000 }
  params = Hostile.damage(random, params)
  const message: Json = { jsonrpc: "2.0", ...(isRequest ? { id } : undefined), method: method.name, params }
  return random.chance(0.05) ? Hostile.damage(random, message) : message
}

/** A response to a request of the server. */
const hostileAnswer = (random: Random.Random, revision: Revision.Revision, { id, method }: Json): Json => {
  if (random.chance(0.1)) {
    const error = { code: -32_000, message: "no", data: { a: 1 } }
    return Hostile.damage(random, { jsonrpc: "2.0", id, error })
  }
  const known = Method.request(method, revision) ?? Method.inputRequest(method, Revision.latest)
  let result: unknown = known === undefined ? {} : written(random, known, revision, "result")
  if (method === "elicitation/create" && random.chance(0.6)) {
    result = { action: "accept", content: { name: "a", count: 1, which: "a", several: ["a"], day: "2026-01-01" } }
  }
  if (random.chance(0.15)) {
    const task = {
      taskId: "t",
      status: "working",
      createdAt: "2026-01-01T00:00:00Z",
      lastUpdatedAt: "2026-01-01T00:00:00Z",
      ttl: 1_000,
      pollInterval: 0
    }
    result = method.startsWith("tasks/") ? task : { task }
  }
  return Hostile.damage(random, { jsonrpc: "2.0", id, result: Hostile.damage(random, result) })
}

/** The responses to input requests of a result, for the next round. */
const nextRound = (random: Random.Random, sent: Json, { inputRequests, requestState }: Json): Json => {
  const inputResponses: Json = {}
  for (const [key, request] of Object.entries<Json>(inputRequests ?? {})) {
    inputResponses[key] = hostileAnswer(random, Revision.latest, { id: 0, method: request.method })?.result
  }
  return Hostile.damage(random, { ...sent.params, inputResponses, requestState })
}

let currentReport: Report = () => {}
const logger = errorLogger((fault) => currentReport(fault))

// A server collects tasks and subscriptions, so it is replaced now and then.
let built:
  | { readonly scope: Scope.Closeable; readonly context: Context.Context<McpServer.McpServer>; uses: number }
  | undefined

const serverOf = Effect.gen(function*() {
  if (built !== undefined && built.uses++ < 300) return built.context
  if (built !== undefined) yield* Scope.close(built.scope, Exit.void)
  const scope = Scope.makeUnsafe()
  const context = yield* Effect.orDie(Layer.buildWithScope(Server.make(logger), scope))
  built = { scope, context, uses: 0 }
  return context
})

/** Ends the server. */
const close = Effect.suspend(() => {
  const scope = built?.scope
  built = undefined
  return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
})

/** Uses the server, and reports the errors that it logs. */
const withServer = <A, E>(
  report: Report,
  use: Effect.Effect<A, E, McpServer.McpServer | Scope.Scope>
): Effect.Effect<void> =>
  Effect.gen(function*() {
    currentReport = report
    const context = yield* serverOf
    yield* observed(Effect.scoped(Effect.provideContext(use, context)), report)
  })

export const serverTarget: Target = {
  name: "server",
  close,
  run: (random, report) =>
    withServer(
      report,
      Effect.gen(function*() {
        const revision = random.pick(Revision.all)
        const connection = new TextConnection()
        const sent = new Map<unknown, Json>()
        const taskIds: Array<string> = []
        let answered = false
        let rounds = 0
        let id = 0
        const send = (message: Json): void => {
          let text = Hostile.stringify(message)
          if (random.chance(0.03)) text = Hostile.garble(random, text, Hostile.jsonPieces)
          else sent.set(message?.id, message)
          connection.deliver(text)
        }
        connection.onText = (text) => {
          const message: Json = JSON.parse(text)
          for (const one of Array.isArray(message) ? message : [message]) {
            if (one.id === "last") answered = true
            if (one.error?.data?.reference !== undefined) {
              report(`${revision}: internal error for ${JSON.stringify(sent.get(one.id) ?? null).slice(0, 1_000)}`)
            }
            const taskId = one.result?.task?.taskId ?? one.result?.taskId
            if (typeof taskId === "string") taskIds.push(taskId)
            if (typeof one.method === "string" && one.id !== undefined) {
              connection.deliver(Hostile.stringify(hostileAnswer(random, revision, one)))
            }
            const before = sent.get(one.id)
            if (one.result?.resultType === "input_required" && before !== undefined && rounds++ < 6) {
              send({ ...before, id: ++id, params: nextRound(random, before, one.result) })
            }
          }
        }
        const server = yield* McpServer.McpServer
        yield* server.serve(connection)
        const isSession = Revision.era(revision) === "session"
        if (isSession) {
          const params = { protocolVersion: revision, capabilities, clientInfo }
          const initialize = { jsonrpc: "2.0", id: ++id, method: "initialize", params }
          if (random.chance(0.5)) send(initialize)
          else {
            send({ ...initialize, params: Hostile.damage(random, params) })
            send({ ...initialize, id: ++id })
          }
          send({ jsonrpc: "2.0", method: "notifications/initialized" })
        }
        for (let count = 1 + random.below(8); count > 0; count--) {
          const message = hostileMessage(random, revision, ++id, taskIds)
          send(
            revision === "2025-03-26" && random.chance(0.1)
              ? [message, hostileMessage(random, revision, ++id, taskIds)]
              : message
          )
          if (random.chance(0.5)) yield* settle
        }
        for (let turn = 0; turn < 3; turn++) yield* settle
        connection.deliver(Hostile.stringify(
          isSession
            ? { jsonrpc: "2.0", id: "last", method: "ping" }
            : { jsonrpc: "2.0", id: "last", method: "server/discover", params: { _meta: meta("2026-07-28") } }
        ))
        for (let turn = 0; turn < 400 && !answered; turn++) yield* settle
        if (!answered) report(`${revision}: the last request was not answered`)
      })
    )
}
