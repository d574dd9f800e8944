/**
 * Shared by the tests of the protocol: a server with tasks on an engine, and its clients in all revisions. Responses
 * are validated against the official schemas, including that of the extension.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import type { Principal } from "@skein/runtime/Connection"
import type { Catalog } from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as kit from "../../../server/test/kit.ts"
import * as fake from "../fakeEngine.ts"

export type Json = kit.Json

/** The extension, as both sides declare it. */
export const extension = "io.modelcontextprotocol/tasks"
export const tasks = { extensions: { [extension]: {} } }

const capabilities = "io.modelcontextprotocol/clientCapabilities"

/**
 * The principal, revision and capabilities of a client. In stateless revisions it declares the extension by default.
 */
export interface Who {
  readonly revision?: Revision.Revision
  readonly principal?: Principal
  readonly can?: JsonRpc.JsonObject
}

/** A client of tasks. */
export interface Client extends kit.Client {
  /** The `_meta` of its requests. */
  readonly meta: JsonRpc.JsonObject
}

type Needs = Layer.Layer<never, unknown, Catalog | TaskEngine>

/** A server, its engine, and its clients. */
export const server = (
  definitions: ReadonlyArray<McpServer.Definitions | Needs>,
  options?: Tasks.Options,
  engine: Layer.Layer<TaskEngine, unknown> = fake.layer
) =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const layer = McpServer.layer({ name: "test", version: "1.0.0" }, ...definitions, Tasks.layer(options)).pipe(
      Layer.provideMerge(engine)
    ) as Layer.Layer<McpServer.McpServer | Catalog | TaskEngine | fake.FakeTasks>
    const context = yield* Scope.provide(Layer.build(layer), scope)
    const server = Context.get(context, McpServer.McpServer)
    return {
      context,
      server,
      fake: Context.getOrUndefined(context, fake.FakeTasks)!,
      close: Scope.close(scope, Exit.void),
      connect: (who: Who = {}) => connect(server, who)
    }
  })

export const connect = (
  server: McpServer.McpServer["Service"],
  { can, principal, revision = Revision.latest }: Who
): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.gen(function*() {
    const client = yield* kit.linkAs(server, principal, revision)
    if (Revision.era(revision) === "session") {
      yield* client.result("initialize", { ...kit.hello(revision), capabilities: can ?? {} })
      client.notify("notifications/initialized")
      return Object.assign(client, { meta: {} })
    }
    const meta = { ...kit.meta(), [capabilities]: can ?? tasks }
    const send = client.send.bind(client)
    return Object.assign(client, {
      meta,
      send: (method: string, params: Json = {}) => send(method, { ...params, _meta: { ...meta, ...params._meta } })
    })
  })

/** Calls a tool, and returns the task of its result. */
export const begin = (client: Client, name: string, args: Json = {}): Effect.Effect<Json> =>
  Effect.tap(client.call(name, args), (result) => {
    if (result.resultType !== "task") throw new Error(`${name} is no task: ${JSON.stringify(result)}`)
    return kit.settle
  })

/** The current state of a task. */
export const get = (client: Client, taskId: string): Effect.Effect<Json> => client.result("tasks/get", { taskId })

export { settle } from "../../../server/test/kit.ts"

/** A server without `Tasks.layer`. */
export const bare = (definitions: ReadonlyArray<McpServer.Definitions>) =>
  kit.client(kit.server(...definitions) as kit.Server)

/** The engine behind a server. */
export const engine = Effect.map(TaskEngine, (engine) => engine)
