/** A tea house with guests that speak raw JSON-RPC over HTTP, and a console for it. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Console from "@skein/console/Console"
import { ConsoleSources } from "@skein/console/ConsoleSource"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Resource from "@skein/server/Resource"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type Fixed, FixedBounds } from "../src/internal/bounds.ts"

const brew = Tool.layer(
  Tool.make("brew", { input: { tea: Schema.String, minutes: Schema.optionalKey(Schema.Number) } }),
  ({ minutes = 3 }) =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: minutes, total: 8, message: "the leaves unfold" })
      return yield* Effect.never
    })
)

const taste = Tool.layer(
  Tool.make("taste"),
  () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("How is the tea?", { stars: Schema.Int })),
      ({ stars }) => `${stars} stars`
    )
)

const warm = Tool.layer(
  Tool.make("warm_the_pot"),
  () => Effect.withSpan(Effect.never, "wait for the kettle") as Effect.Effect<string>
)

const menu = Resource.layer(Resource.make("tea://menu", { name: "menu" }), Effect.succeed("Assam"))

/** The server, with tracing. */
export const tea = McpServer.layer(
  { name: "tea house", version: "1.2.0", limits: { maxInFlightRequests: 2 } },
  Telemetry.layer(),
  brew,
  taste,
  warm,
  menu
)

/** A running server with its console. */
export interface House {
  readonly url: string
  readonly console: Console.Server["Service"]
  readonly server: McpServer.McpServer["Service"]
}

/** Opens the house and its console. */
export const open = (
  options: Console.Options = {},
  sources: Layer.Layer<never, never, ConsoleSources> = Layer.empty,
  fixed: Partial<Fixed> = {}
): Effect.Effect<House, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const house = NodeHttp.layer({
      port: 0,
      // Sessions end with the test, and their requests never end on their own.
      shutdownTimeout: "50 millis",
      principal: ({ headers }) => {
        const user = headers["x-user"]
        return typeof user === "string" ? { id: user } : undefined
      }
    })
    const context = yield* Layer.build(
      Layer.merge(house, Console.layer({ port: 0, ...options })).pipe(
        Layer.provideMerge(tea),
        Layer.provide(Layer.provideMerge(sources, ConsoleSources.layer)),
        Layer.provide(Layer.succeed(FixedBounds, { ...Context.get(Context.empty(), FixedBounds), ...fixed }))
      )
    )
    return {
      url: Context.get(context, NodeHttp.Server).url,
      console: Context.get(context, Console.Server),
      server: Context.get(context, McpServer.McpServer)
    }
  })

/** One client. */
export interface Guest {
  readonly call: (method: string, params?: JsonRpc.JsonObject) => Promise<Response>
  readonly notify: (method: string) => Promise<Response>
  readonly listen: () => Promise<Response>
}

const accept = "application/json, text/event-stream"

/** Opens a session. Its requests end with the signal. */
export const visit = async (
  url: string,
  signal: AbortSignal,
  { name = "Guest", user, capabilities = {} }: {
    readonly name?: string
    readonly user?: string
    readonly capabilities?: JsonRpc.JsonObject
  } = {}
): Promise<Guest> => {
  const headers: Record<string, string> = {
    accept,
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25"
  }
  if (user !== undefined) headers["x-user"] = user
  const post = (message: object): Promise<Response> =>
    fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }), signal })
  const opened = await post({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities, clientInfo: { name, version: "3.1" } }
  })
  await opened.text()
  headers["mcp-session-id"] = opened.headers.get("mcp-session-id")!
  await (await post({ method: "notifications/initialized" })).text()
  let id = 0
  return {
    call: (method, params) => post({ id: ++id, method, params }),
    notify: (method) => post({ method }),
    listen: () => fetch(url, { headers, signal })
  }
}

/** Sends a stateless request. */
export const ask = (
  url: string,
  signal: AbortSignal,
  method: string,
  params: JsonRpc.JsonObject,
  more: Readonly<Record<string, string>> = {}
): Promise<Response> => {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "Stateless guest", version: "0.9" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} }
  }
  const name = params["name"]
  return fetch(url, {
    method: "POST",
    headers: {
      accept,
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : undefined),
      ...more
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: { ...params, _meta } }),
    signal
  })
}

/** Opens many sessions in memory. Every tenth has a request that waits. */
export const crowd = (server: McpServer.McpServer["Service"], count: number): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    for (let at = 0; at < count; at++) {
      const [ours, theirs] = yield* InMemoryTransport.make()
      theirs.open({ message: () => {}, end: () => {} })
      yield* server.serve(ours)
      const clientInfo = { name: `Guest ${at}`, version: "1" }
      theirs.send(
        JsonRpc.request(0, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
      )
      theirs.send(JsonRpc.notification("notifications/initialized"))
      const params = { name: "brew", arguments: { tea: "Assam" } }
      if (at % 10 === 0) theirs.send(JsonRpc.request(1, "tools/call", params))
    }
  })

/** Requests that end with the scope. */
export const signal: Effect.Effect<AbortSignal, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort())
  ),
  (controller) => controller.signal
)

/** Ignores the end of a request that the test leaves open. */
export const leave = (response: Promise<Response>): void => void response.then((one) => one.text()).catch(() => {})

/** Waits until a condition holds. */
export const until = async (condition: () => Promise<boolean> | boolean): Promise<void> => {
  for (let attempt = 0; attempt < 6_000; attempt++) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`it never happened: ${condition}`)
}
