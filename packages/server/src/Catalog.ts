/**
 * The catalog of a server: the tools, resources, resource templates and prompts that it offers now.
 *
 * The layers of the definitions (`Tool.layer`, `Prompt.layer`, …) fill the catalog. An entry leaves it when the scope
 * of its layer closes. Lists are in the order in which the definitions are written, however long their layers take to
 * build. Entries that are added while the server runs come after the others, sorted by name.
 *
 * A running server changes its catalog with effects: `remove`, `disable` and `enable` here, and `Tool.add`,
 * `Tool.replace` and so on for new definitions. Each of these changes is undone when its scope closes. They need the
 * `Catalog` service, which every handler has and which the layer of the server provides. Use `persistent` for a change
 * that lasts as long as the server, and `setEnabled` for a switch. Clients are notified of changed lists, at most once
 * per 50 ms.
 *
 * @example
 * const unlock = Tool.layer(Tool.make("unlock"), () =>
 *   Catalog.persistent(Tool.add(secret, reveal)).pipe(Effect.as("The tool secret is available now")))
 */
import type { Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { DefinitionError } from "./DefinitionError.ts"
import type { ListKind } from "./EventBus.ts"
import {
  type CatalogInternals,
  ExtensionList,
  internals,
  MiddlewareStack,
  OperationHooks,
  type PromptEntry,
  type ResourceEntry,
  type TemplateEntry,
  type ToolEntry
} from "./internal/catalog/catalogState.ts"
import { placesHere } from "./internal/catalog/placement.ts"
import { type Entry, type Guard, Registry, type Terms } from "./Registry.ts"

// The entries that extensions see. They are declared beside the state of the catalog.
export type {
  Completer,
  Completers,
  Handled,
  PromptEntry,
  Reader,
  ResourceEntry,
  TemplateEntry,
  ToolEntry,
  Watch
} from "./internal/catalog/catalogState.ts"

/** Builds definitions while the server runs, each at a place of its own: made by `places`. */
export type Places = <E, R>(
  at: number,
  definitions: Layer.Layer<never, E, R>
) => Effect.Effect<void, E, Exclude<R, Catalog> | Scope.Scope>

/**
 * Makes the function that builds definitions while the server runs, until the scope closes. Their entries are in lists where
 * this layer is, in the order of the numbers `at`: whole numbers from 0. It makes the order of additions independent of when
 * they are added, and of their names. `ready` of their extensions runs before the function returns.
 *
 * @example
 * const Parts = Layer.effectDiscard(Effect.gen(function*() {
 *   const build = yield* Catalog.places
 *   yield* Effect.forkScoped(Stream.runForEach(parts, ({ at, layer }) => build(at, layer)))
 * }))
 */
export const places: Effect.Effect<Places, never, Catalog> = Effect.withFiber((fiber) => {
  const memoMapAt = placesHere(fiber)
  return Effect.map(
    Catalog,
    (catalog): Places => (at, definitions) =>
      Effect.flatMap(Effect.scope, (scope) =>
        Effect.asVoid(Layer.buildWithMemoMap(
          Layer.provide(definitions, Layer.succeed(Catalog, catalog)),
          memoMapAt(at),
          scope
        ))) as never
  )
})

/**
 * The missing service of a handler that requires a `Scope`. Wrap the effect of the handler in `Effect.scoped`.
 *
 * Nothing provides this service. The only scopes that exist while a request is handled belong to the connection or to
 * the server, and would retain the resources of every call until the connection or the server closes.
 */
export interface UnscopedHandler {
  readonly UnscopedHandler: unique symbol
}

/**
 * The services that the layer of a handler requires: those of the handler, without `McpRequest`, which each request
 * provides. A handler that requires a `Scope` requires `UnscopedHandler` here.
 */
export type HandlerServices<R> = R extends McpRequest ? never : R extends Scope.Scope ? UnscopedHandler : R

/** The catalog of a server, by kind. A resource is registered under its URI, a template under its text. */
export class Catalog extends Context.Service<Catalog, {
  readonly tools: Registry<ToolEntry>
  readonly resources: Registry<ResourceEntry>
  readonly templates: Registry<TemplateEntry>
  readonly prompts: Registry<PromptEntry>
  readonly [internals]: CatalogInternals
}>()("@skein/server/Catalog") {}

/** @internal Makes the empty catalog of a server whose requests start with the services of `base`. */
export const make = (
  base: Context.Context<never>,
  scope: Scope.Scope,
  declared: ReadonlyArray<ListKind> = []
): Catalog["Service"] => {
  const changes: CatalogInternals["changes"] = { listener: undefined }
  const registry = <A extends Entry<unknown>>(kind: Kind, list: ListKind): Registry<A> => {
    const made = new Registry<A>(kind)
    made.onChange = () => changes.listener?.listChanged(list)
    return made
  }
  const state = {
    middleware: new MiddlewareStack(),
    extensions: new ExtensionList(),
    operations: new OperationHooks(),
    inner: { dispatch: undefined },
    base,
    scope,
    declared,
    stateKeys: { ofEndpoint: undefined },
    changes,
    updateListeners: new Set<(uri: string) => void>()
  }
  const catalog = {
    tools: registry<ToolEntry>("tool", "tools"),
    resources: registry<ResourceEntry>("resource", "resources"),
    templates: registry<TemplateEntry>("resource template", "resources"),
    prompts: registry<PromptEntry>("prompt", "prompts"),
    [internals]: state
  }
  // Handlers change the catalog that they are in.
  state.base = Context.add(base, Catalog, catalog)
  return catalog
}

/**
 * The services that every request of the server starts with. For a package that runs handlers outside of clients'
 * requests, as `@skein/tasks` does. A server always returns the same object, also for a view of its catalog, so that it
 * identifies the server.
 */
export const requestServices = (catalog: Catalog["Service"]): Context.Context<never> => catalog[internals].base

/** The kind of an entry. With a name it identifies the entry: the URI of a resource, the text of a template. */
export type Kind = DefinitionError["kind"]

const registryOf = (catalog: Catalog["Service"], kind: Kind): Registry<Entry<unknown>> =>
  catalog[
    ({ tool: "tools", resource: "resources", "resource template": "templates", prompt: "prompts" } as const)[kind]
  ]

/** A change of one entry until the scope closes. */
type Change = Effect.Effect<void, DefinitionError, Catalog | Scope.Scope>

/**
 * Removes an entry until the scope closes. Its name is free for another entry meanwhile. Fails with `DefinitionError`
 * `NotFound` if no entry has the name.
 *
 * @example
 * Effect.scoped(Effect.andThen(Catalog.remove("tool", "search"), maintenance))
 */
export const remove = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).remove(name))

/**
 * Disables an entry until the scope closes: no list contains it, and a request for its name is answered as if it did
 * not exist. The name stays taken. Requests in progress continue. Fails with `DefinitionError` `NotFound` if no entry
 * has the name.
 *
 * @example
 * const maintenance = Effect.scoped(Effect.andThen(Catalog.disable("tool", "search"), rebuildIndex))
 */
export const disable = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).enable(name, false))

/**
 * Enables a disabled entry until the scope closes. Of several calls of `enable` and `disable` the last one applies.
 * Fails with `DefinitionError` `NotFound` if no entry has the name.
 */
export const enable = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).enable(name, true))

/**
 * Enables or disables an entry without a scope: until the next call, or until the entry is removed. Use it for an entry
 * that is switched on and off repeatedly, because nothing is retained per call. Fails with `DefinitionError` `NotFound`
 * if no entry has the name.
 *
 * @example
 * const lock = Tool.layer(Tool.make("lock"), () => Effect.as(Catalog.setEnabled("tool", "cellar", false), "Locked"))
 */
export const setEnabled = (kind: Kind, name: string, enabled: boolean): Effect.Effect<void, DefinitionError, Catalog> =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).setEnabled(name, enabled))

/**
 * Runs changes with the scope of the server, so that they last as long as the server. For handlers, whose own scope
 * ends with the call. The server retains every change until it closes. Give repeated changes a scope of their own, and
 * use `setEnabled` for a switch.
 *
 * @example
 * const unlock = Tool.layer(Tool.make("unlock"), () =>
 *   Catalog.persistent(Tool.add(secret, reveal)).pipe(Effect.as("The tool secret is available now")))
 */
export const persistent = <A, E, R>(
  changes: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, Scope.Scope> | Catalog> =>
  Effect.flatMap(Catalog, (catalog) => Scope.provide(changes, catalog[internals].scope))

/**
 * Notifies clients that a resource has changed (`notifications/resources/updated`): those that subscribed to it and may
 * see it now. It does not wait for them. A client that is slow to read receives one notification for several changes.
 *
 * With a `parent`, clients that subscribed to the parent are notified too, if they may see both: "This might be a
 * sub-resource of the one that the client actually subscribed to".
 *
 * @example
 * const save = Tool.layer(Tool.make("save", { input: { text: Schema.String } }), ({ text }) =>
 *   write(text).pipe(Effect.andThen(Catalog.updated("notes://today")), Effect.as("Saved")))
 */
export const updated = (
  uri: string,
  options: { readonly parent?: string | undefined } = {}
): Effect.Effect<void, never, Catalog> =>
  Effect.flatMap(
    Catalog,
    (catalog) => catalog[internals].changes.listener?.resourceUpdated(uri, options.parent) ?? Effect.void
  )

const withTerms = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  terms: Terms,
  definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> => {
  const view = Effect.map(Catalog, (catalog) => ({
    ...catalog,
    tools: catalog.tools.withTerms(terms),
    resources: catalog.resources.withTerms(terms),
    templates: catalog.templates.withTerms(terms),
    prompts: catalog.prompts.withTerms(terms)
  }))
  const each = definitions.map((definition) => Layer.provide(definition, Layer.effect(Catalog, view)))
  return each.reduce((all, layer) => Layer.merge(all, layer), Layer.empty) as never
}

/**
 * Shows definitions to some callers only, by their principal, client or revision. To all other callers the definitions
 * do not exist: not in lists, and not for calls, completion or subscriptions by name. The predicate runs for each
 * request, so it must be fast. An exception in it is a defect of the request.
 *
 * @example
 * const admin = Catalog.visibleTo(({ principal }) => principal?.id === "admin", Tool.layer(reset, doReset))
 */
export const visibleTo = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  visible: (caller: Caller) => boolean,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> =>
  withTerms({ visible }, definitions)

/**
 * Refuses the requests of some callers for definitions that all callers see in lists: calls, reads, subscriptions to a
 * resource, and completion. The guard returns the error, such as one of `McpError.withHttp`. It runs for each request,
 * before its arguments are decoded, so it must be fast. An exception in it is a defect of the request. Of nested guards
 * the inner one is asked first. `subscriptions/listen` leaves the resources out that it refuses.
 *
 * @example
 * const closed = McpError.withHttp(McpError.invalidRequest("Forbidden: members only"), { status: 403 })
 * const members = Catalog.guarded(({ principal }) => principal === undefined ? closed : undefined, Tool.layer(order, doIt))
 */
export const guarded = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  guard: Guard,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> => withTerms({ guard }, definitions)

/**
 * Registers definitions that stay disabled until `enable` or `setEnabled`.
 *
 * @example
 * const server = McpServer.layer(options, Catalog.disabled(Tool.layer(cellar, open)))
 */
export const disabled = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> =>
  withTerms({ enabled: false }, definitions)
