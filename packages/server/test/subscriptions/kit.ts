/**
 * Helpers of the tests of subscriptions: a server with one definition of each kind, its clients, and functions that
 * change it.
 */
import * as Revision from "@skein/protocol/Revision"
import type * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import type { FixedBounds } from "../../src/internal/base/fixedBounds.ts"
import { bounds } from "../fixedBounds.ts"
import * as kit from "../kit.ts"
import { internals } from "../../src/internal/catalog/catalogState.ts"

export const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))
export const prompt = (name: string) => Prompt.layer(Prompt.make(name), () => Effect.succeed("ok"))
export const resource = (uri: string) => Resource.layer(Resource.make(uri), Effect.succeed("ok"))
export const template = ResourceTemplate.layer(
  ResourceTemplate.make("notes://{id}", { name: "note" }),
  ({ id }) => Effect.succeed(id)
)
export const kinds = {
  tools: [tool, "notifications/tools/list_changed", "toolsListChanged"],
  prompts: [prompt, "notifications/prompts/list_changed", "promptsListChanged"],
  resources: [(name: string) => resource(`r://${name}`), "notifications/resources/list_changed", "resourcesListChanged"]
} as const
export type Kind = keyof typeof kinds
export const all: ReadonlyArray<Kind> = ["tools", "prompts", "resources"]
export const one = [tool("t"), prompt("p"), resource("r://r"), template]
export const id = "io.modelcontextprotocol/subscriptionId"
export const updated = "notifications/resources/updated"
export const acknowledged = "notifications/subscriptions/acknowledged"

/** A server with one definition of each kind, its clients, and functions that change it. */
export const set = (
  { fixed = {}, ...options }: Partial<McpServer.Options> & { readonly fixed?: Partial<FixedBounds> } = {},
  definitions: ReadonlyArray<McpServer.Definitions> = one
) =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "test", version: "1.0.0", ...options }, ...definitions) as kit.Server
    const layer = Layer.provide(server, bounds(fixed))
    const scope = yield* Scope.make()
    const context = yield* Scope.provide(Layer.build(layer), scope)
    const running = Context.get(context, McpServer.McpServer)
    return {
      context,
      subscriptions: running[internals].subscriptions,
      server: running,
      close: Scope.close(scope, Exit.void),
      connect: (revision: Revision.Revision = Revision.latest) => Effect.provide(kit.connect(revision), context),
      run: <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog>) => Effect.provide(effect, context),
      /** Adds one definition, until the scope closes. */
      offer: (kind: Kind, name: string) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const layer = Layer.provide(kinds[kind][0](name), Layer.succeedContext(context))
          yield* Scope.provide(Layer.build(layer), scope)
          return scope
        })
    }
  })

/** Opens a subscription, and waits for its first message. */
export const listen = (client: kit.Client, notifications: kit.Json, as?: string | number) =>
  Effect.gen(function*() {
    const params = { notifications, _meta: kit.meta() }
    const asked = client.sendRaw("subscriptions/listen", params, as)
    yield* kit.settle
    return asked
  })

export const filter = (kind: Kind) => ({ [kinds[kind][2]]: true })

/** Advances the test clock, and runs all fibers that it wakes. */
export const pass = (time: Duration.Input) =>
  Effect.andThen(Effect.andThen(kit.settle, TestClock.adjust(time)), kit.settle)
