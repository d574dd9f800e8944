/** Helpers of the tests of fleets: nodes that listen on ports, and a client whose requests choose their node. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as Catalog from "@skein/server/Catalog"
import * as EventStore from "@skein/server/EventStore"
import * as Logging from "@skein/server/Logging"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { Json } from "../kit.ts"
import { Client, Control, enter, type Server } from "../session/kit.ts"
import type { MemoryFleet } from "./memoryFleet.ts"

export const uri = "test://watched"

/** The server of every node. */
export const server = (control: Control) =>
  McpServer.layer(
    { name: "fleet", version: "1" },
    Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) => Effect.succeed(text)),
    Tool.layer(Tool.make("ask"), () =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        const params = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 1 }
        const answer = yield* Effect.orDie(request.request("sampling/createMessage", params, {
          onProgress: ({ progress }) => void control.failures.push(progress)
        }))
        return String(answer["model"])
      })),
    Tool.layer(Tool.make("hold", { input: { key: Schema.String } }), ({ key }) =>
      Effect.as(
        Effect.onInterrupt(
          Effect.suspend(() => {
            control.started.push(key)
            return control.gate(key).await
          }),
          () => Effect.sync(() => void control.interrupted.push(key))
        ),
        `${key} done`
      )),
    // It does not stop when it is interrupted.
    Tool.layer(Tool.make("stubborn", { input: { key: Schema.String } }), ({ key }) =>
      Effect.uninterruptible(Effect.suspend(() => {
        control.started.push(key)
        return Effect.as(control.gate(key).await, `${key} done`)
      }))),
    Tool.layer(Tool.make("steps", { input: { key: Schema.String } }), ({ key }) =>
      Effect.gen(function*() {
        yield* Progress.report({ progress: 1 })
        control.started.push(key)
        yield* control.gate(key).await
        yield* Progress.report({ progress: 2 })
        return `${key} done`
      })),
    Tool.layer(Tool.make("log"), () =>
      Effect.as(Logging.as("info")(Effect.log("logged")), "done")),
    Tool.layer(Tool.make("touch"), () =>
      Effect.as(Catalog.updated(uri), "touched")),
    Tool.layer(Tool.make("extra"), () => Effect.succeed("")),
    Tool.layer(Tool.make("shrink"), () => Effect.as(Catalog.setEnabled("tool", "extra", false), "shrunk")),
    // A message that belongs to no request.
    Tool.layer(Tool.make("announce", { input: { text: Schema.String } }), ({ text }) =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        const { session: peer } = request.caller as unknown as { readonly session?: { readonly peer: Peer } }
        const own = (request.caller as unknown as { readonly peer?: Peer }).peer ?? peer!.peer
        yield* own.notify("notifications/test", { text })
        return "announced"
      })),
    Resource.layer(Resource.make(uri), Effect.succeed("watched"))
  )

/** A node that listens. */
export interface Node extends Server {
  readonly node: number
  /** Stops it, as a deploy does. */
  readonly close: Effect.Effect<void>
}

export interface Options extends NodeHttp.Options {
  /** Whether the nodes share one event store. */
  readonly sharesEvents?: boolean
}

/** A fleet, which may be one on a database. Without `events` the layer of each node has an event store. */
export type TestFleet = Pick<MemoryFleet, "node"> & Partial<Pick<MemoryFleet, "events">>

/** Starts nodes. The `x-user` header names the principal of a request. */
export const start = (
  fleet: TestFleet,
  count: number,
  { sharesEvents = false, ...options }: Options = {}
): Effect.Effect<ReadonlyArray<Node>, never, Scope.Scope> =>
  Effect.forEach(Array.from({ length: count }), () =>
    Effect.gen(function*() {
      const { events } = fleet
      const { layer, node } = yield* fleet.node()
      const control = new Control()
      const listening = NodeHttp.layer({
        port: 0,
        shutdownTimeout: "1 second",
        principal: ({ headers }) => headers["x-user"] === undefined ? undefined : { id: String(headers["x-user"]) },
        ...options
      }).pipe(
        Layer.provide(server(control)),
        Layer.provide(
          sharesEvents && events !== undefined ? Layer.succeed(EventStore.EventStore, events) : Layer.empty
        ),
        Layer.provide(layer)
      )
      const scope = yield* Scope.make()
      const context = yield* Effect.orDie(Layer.buildWithScope(listening, scope))
      const close = Effect.suspend(() => {
        control.release()
        return Scope.close(scope, Exit.void)
      })
      yield* Effect.addFinalizer(() => close)
      return { ...Context.get(context, NodeHttp.Server), control, node, close }
    }))

/** The client of a session at another node. */
export const at = (client: Client, node: Node): Client => new Client(node, client.id, client.headers)

/** Opens a session at the first node. Returns its client at each node. */
export const open = (
  nodes: ReadonlyArray<Node>,
  { headers, revision = "2025-11-25" }: {
    readonly headers?: { readonly [name: string]: string }
    readonly revision?: string
  } = {}
): Effect.Effect<ReadonlyArray<Client>> =>
  Effect.map(
    enter(nodes[0]!, revision, headers === undefined ? {} : { headers }),
    (client) => nodes.map((node) => at(client, node))
  )

/** The text of a tool's result. */
export const textOf = ({ result }: Json): string => result.content[0].text

export const response = (id: JsonRpc.Id, model: string): Json => ({
  jsonrpc: "2.0",
  id,
  result: { role: "assistant", content: { type: "text", text: "" }, model }
})
