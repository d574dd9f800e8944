/**
 * What a server offers now: its tools, resources, resource templates and prompts.
 *
 * A catalog is filled by the layers of the definitions (`Tool.layer` and its kin); an entry leaves it when the scope of its
 * layer closes. Listings come in the order of their names, so that they are the same whatever the layers did.
 *
 * While the server runs it changes by effects, each undone when its scope closes: `remove`, `disable`, `enable`, and what adds
 * and replaces a definition of one kind (`Tool.add`, `Tool.replace`). They need the `Catalog`, which a handler finds in its
 * context, and which the layer of the server provides. What shall last as long as the server is put in `lasting`, and what is a
 * mere switch is `setEnabled`. Clients hear of it, once per `listChangedDebounce`.
 *
 * @example
 * const unlock = Tool.layer(Tool.make("unlock"), () =>
 *   Catalog.lasting(Tool.add(secret, reveal)).pipe(Effect.as("There is one more tool now")))
 */
import type * as CallTool from "@skein/protocol/CallTool"
import type * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import type * as WirePrompt from "@skein/protocol/Prompt"
import type * as WireResource from "@skein/protocol/Resource"
import type * as WireTool from "@skein/protocol/Tool"
import type * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Caller, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { ListKind } from "./EventBus.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { OutgoingNotification } from "./internal/subscriptions/pendingNotifications.ts"
import { type Entry, Registry, type Terms, type Visible } from "./Registry.ts"
import type { ServerObserver } from "./internal/observability/outcome.ts"

/** What handles a request for an entry. */
export type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>

/**
 * A handler asks for a `Scope`, and the only ones around would keep what it acquires for as long as the connection or the server
 * lives. So nobody can provide this: wrap the handler's effect in `Effect.scoped`, and the scope is the call's own.
 */
export interface UnscopedHandler {
  readonly UnscopedHandler: unique symbol
}

/** What completes the text of an argument or a variable: the candidates in the order of their rank. */
export type Completer = (
  value: string,
  others: { readonly [name: string]: string }
) => Handled<ReadonlyArray<string>>

/** The completers of a prompt's arguments or a template's variables. */
export type Completers = ReadonlyMap<string, Completer>

/** A tool and what runs it. */
export interface ToolEntry extends Entry<WireTool.Tool> {
  /** The arguments that a client mirrors into headers. */
  readonly headers?: ReadonlyArray<XMcpHeader.Param> | undefined
  /** What extensions were told of it (`Tool.Options.extensions`). */
  readonly extensions?: Context.Context<never> | undefined
  readonly call: (args: JsonObject, exchange: RequestContext) => Handled<CallTool.CallToolResult>
}

/** Reads a resource. */
export type Reader = (exchange: RequestContext) => Handled<WireResource.ReadResourceResult>

/** A resource and what reads it. */
export interface ResourceEntry extends Entry<WireResource.Resource> {
  readonly read: Reader
}

/** A template and what reads a resource that matches it; `undefined` for one that does not. */
export interface TemplateEntry extends Entry<WireResource.ResourceTemplate> {
  /** The names of its variables. */
  readonly names: ReadonlyArray<string>
  readonly match: (uri: string) => Reader | undefined
  readonly complete?: Completers | undefined
}

/** A prompt and what fills it in. */
export interface PromptEntry extends Entry<WirePrompt.Prompt> {
  readonly get: (args: JsonObject, exchange: RequestContext) => Handled<WirePrompt.GetPromptResult>
  readonly complete?: Completers | undefined
}

/** The middleware of a server, outermost first. */
export class Stack {
  /** Who hears of what no middleware sees. Nobody, unless `Telemetry.layer` is among the definitions. */
  observer: ServerObserver | undefined = undefined
  #all: ReadonlyArray<(next: Dispatcher<McpRequest>) => Dispatcher<McpRequest>> = []
  #version = 0

  /** Grows with every change. */
  get version(): number {
    return this.#version
  }

  get all(): ReadonlyArray<(next: Dispatcher<McpRequest>) => Dispatcher<McpRequest>> {
    return this.#all
  }

  /** Adds one inside of those that are there, until the scope closes. */
  add(
    middleware: (next: Dispatcher<McpRequest>) => Dispatcher<McpRequest>
  ): Effect.Effect<void, never, Scope.Scope> {
    const change = (all: Stack["all"]) =>
      Effect.sync(() => {
        this.#all = all
        this.#version++
      })
    return Effect.acquireRelease(
      Effect.suspend(() => change([...this.#all, middleware])),
      () => Effect.suspend(() => change(this.#all.filter((other) => other !== middleware)))
    )
  }
}

/** A method and what handles it. Made by `Extension.method`. */
export interface ExtensionMethod {
  readonly method: Method.AnyRequest
  readonly run: (params: unknown, exchange: RequestContext) => Handled<Codec.Writable<unknown>>
}

/** A call of a tool, before its arguments are read. */
export interface ToolCall {
  readonly tool: ToolEntry
  readonly params: CallTool.CallToolRequestParams
  readonly exchange: RequestContext
}

/** What a tool may be called with, or a handle in its place. */
export type Called = Handled<Codec.Writable<CallTool.CallToolResult>>

/** Tells a notification to who listens. Of several with one key that a slow reader has not read, the last one is sent. */
export type Publish = (key: string, method: string, params: JsonObject) => void

/** What an extension tells one `subscriptions/listen`. */
export interface Subscription {
  /** What is acknowledged of it, beside what the server itself acknowledges. */
  readonly agreed: JsonObject
  /** Runs from the acknowledgement on; it is interrupted when the subscription ends. */
  readonly run: (tell: Publish) => Effect.Effect<void>
}

/** What an extension adds to a server. See `Extension`. */
export interface Extension {
  /** Its identifier, or a name for messages. */
  readonly name: string
  /** What the server declares besides, to this caller. The members of `extensions` of several extensions are merged. */
  readonly capabilities?: ((caller: Caller) => JsonObject | undefined) | undefined
  readonly methods?: ReadonlyArray<ExtensionMethod> | undefined
  /**
   * Is given every call of a tool, and answers it or calls `next`. The first extension stands outermost. It must be quick to say
   * that a call is not its own.
   */
  readonly call?: ((call: ToolCall, next: (call: ToolCall) => Called) => Called) | undefined
  /** Takes part in a `subscriptions/listen` that asks for this; `undefined` where nothing of it is the extension's. */
  readonly listen?:
    | ((
      notifications: JsonObject,
      exchange: RequestContext
    ) => Effect.Effect<Subscription | undefined, McpError.McpError, McpRequest>)
    | undefined
  /** What it runs now beside the requests of clients, for `McpServer.inspect`. */
  readonly running?: Iterable<RequestContext> | undefined
  /** Runs when all definitions of the server are there. What it forks into the scope lives as long as the server. */
  readonly ready?: Effect.Effect<void, never, Scope.Scope> | undefined
}

/** The extensions of a server, in the order in which they were added. */
export class Extensions {
  all: ReadonlyArray<Extension> = []

  /** Adds one until the scope closes. */
  add(extension: Extension): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void (this.all = [...this.all, extension])),
      () => Effect.sync(() => void (this.all = this.all.filter((other) => other !== extension)))
    )
  }
}

/** Who hears of changes: the server, once there is one. */
export interface Listener {
  /** A list has changed, as far as this process knows. */
  readonly listed: (kind: ListKind) => void
  readonly updated: (uri: string, parent: string | undefined) => Effect.Effect<void>
  /** Tells a notice to the session of a caller; `false` where none is open. */
  readonly tell: (caller: Caller, key: string, notice: OutgoingNotification) => boolean
  /** Closes when the session of a caller ends; `undefined` where none is open. */
  readonly session: (caller: Caller) => Scope.Scope | undefined
}

/** What a server offers. */
export class Catalog extends Context.Service<Catalog, {
  readonly tools: Registry<ToolEntry>
  readonly resources: Registry<ResourceEntry>
  readonly templates: Registry<TemplateEntry>
  readonly prompts: Registry<PromptEntry>
  /** What stands around its dispatcher. */
  readonly middleware: Stack
  readonly extensions: Extensions
  /** The services that every request of the server starts with; the catalog is one of them. */
  readonly base: Context.Context<never>
  /** Closes when the server does. */
  readonly scope: Scope.Scope
  /** The kinds that are offered from the start, whether or not there is something of them. */
  readonly offers: ReadonlyArray<ListKind>
  readonly changes: { listener: Listener | undefined }
}>()("@skein/server/Catalog") {}

/** An empty catalog, for requests that start with the services of `base`. */
export const make = (
  base: Context.Context<never>,
  scope: Scope.Scope,
  offers: ReadonlyArray<ListKind> = []
): Catalog["Service"] => {
  const changes: Catalog["Service"]["changes"] = { listener: undefined }
  const registry = <A extends Entry<unknown>>(kind: DefinitionError["kind"], list: ListKind): Registry<A> => {
    const made = new Registry<A>(kind)
    made.onChange = () => changes.listener?.listed(list)
    return made
  }
  const catalog = {
    tools: registry<ToolEntry>("tool", "tools"),
    resources: registry<ResourceEntry>("resource", "resources"),
    templates: registry<TemplateEntry>("resource template", "resources"),
    prompts: registry<PromptEntry>("prompt", "prompts"),
    middleware: new Stack(),
    extensions: new Extensions(),
    base,
    scope,
    offers,
    changes
  }
  // Handlers change the catalog that they are in.
  catalog.base = Context.add(base, Catalog, catalog)
  return catalog
}

/** What names an entry: its kind, and its name; of a resource its URI, of a template its text. */
export type Kind = DefinitionError["kind"]

const registryOf = (catalog: Catalog["Service"], kind: Kind): Registry<Entry<unknown>> => {
  switch (kind) {
    case "tool":
      return catalog.tools
    case "resource":
      return catalog.resources
    case "resource template":
      return catalog.templates
    case "prompt":
      return catalog.prompts
  }
}

/** A change of one entry, until the scope closes. */
type Change = Effect.Effect<void, DefinitionError, Catalog | Scope.Scope>

/**
 * Takes an entry away until the scope closes: its name is free, and may be given to another. Fails with `DefinitionError`
 * `Unknown` where there is none.
 */
export const remove = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).remove(name))

/**
 * Offers an entry to nobody until the scope closes: it is in no list, and whoever asks for it by its name is told that there is
 * none. Its name stays taken. What is in flight goes on. Fails with `DefinitionError` `Unknown` where there is none.
 */
export const disable = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).enable(name, false))

/**
 * Offers an entry that is disabled, until the scope closes. What was said last holds. Fails with `DefinitionError` `Unknown`
 * where there is none.
 */
export const enable = (kind: Kind, name: string): Change =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).enable(name, true))

/**
 * Says whether an entry is offered, with no scope that undoes it: until something else is said, or the entry goes. For what is
 * switched on and off again and again. Fails with `DefinitionError` `Unknown` where there is none.
 *
 * @example
 * const lock = Tool.layer(Tool.make("lock"), () => Effect.as(Catalog.setEnabled("tool", "cellar", false), "Locked"))
 */
export const setEnabled = (kind: Kind, name: string, enabled: boolean): Effect.Effect<void, DefinitionError, Catalog> =>
  Effect.flatMap(Catalog, (catalog) => registryOf(catalog, kind).setEnabled(name, enabled))

/**
 * Makes changes that last as long as the server: the scope that undoes them is the server's. For a handler, which has no scope
 * but that of its call. What is put here is kept until the server closes, so that what is added again and again wants a scope
 * of its own instead, and what is switched on and off wants `setEnabled`.
 */
export const persistent = <A, E, R>(
  changes: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, Scope.Scope> | Catalog> =>
  Effect.flatMap(Catalog, ({ scope }) => Scope.provide(changes, scope))

/**
 * Says that a resource has changed (`notifications/resources/updated`), to those who have subscribed to it and may see it now.
 * It does not wait for them: who is slow to read hears once of several changes.
 *
 * "This might be a sub-resource of the one that the client actually subscribed to": with a `parent`, those who have subscribed
 * to the parent hear of it too, if they may see both.
 */
export const updated = (
  uri: string,
  options: { readonly parent?: string | undefined } = {}
): Effect.Effect<void, never, Catalog> =>
  Effect.flatMap(Catalog, ({ changes }) => changes.listener?.updated(uri, options.parent) ?? Effect.void)

const under = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  terms: Terms,
  definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> => {
  const view = Effect.map(Catalog, (catalog) => ({
    ...catalog,
    tools: catalog.tools.under(terms),
    resources: catalog.resources.under(terms),
    templates: catalog.templates.under(terms),
    prompts: catalog.prompts.under(terms)
  }))
  const each = definitions.map((definition) => Layer.provide(definition, Layer.effect(Catalog, view)))
  return each.reduce((all, layer) => Layer.merge(all, layer), Layer.empty) as never
}

/**
 * Definitions that only some callers see: by their principal, their client, or their revision. To others they do not exist: not
 * in lists, not by name, neither to be completed nor to be subscribed to. The predicate is asked at each request, so it must be
 * quick; what it throws is a defect of that request.
 *
 * @example
 * const admin = Catalog.visibleTo(({ principal }) => principal?.id === "admin", Tool.layer(reset, doReset))
 */
export const visibleTo = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  visible: Visible,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> => under({ visible }, definitions)

/** Definitions that are there, but disabled until somebody says `enable`. */
export const disabled = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog> =>
  under({ enabled: false }, definitions)
