/**
 * The state of a server's catalog: the entries that registries hold, the middleware, the extensions, and the listener
 * for changes.
 *
 * `Catalog` and `Extension` export the types of this module that authors use. They are declared here because the two
 * modules refer to each other.
 */
import type * as CallTool from "@skein/protocol/CallTool"
import type * as Codec from "@skein/protocol/Codec"
import type { CompleteResult } from "@skein/protocol/Completion"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Method from "@skein/protocol/Method"
import type * as WirePrompt from "@skein/protocol/Prompt"
import type * as WireResource from "@skein/protocol/Resource"
import type * as WireTool from "@skein/protocol/Tool"
import type * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Layer as ComposeLayer } from "@skein/runtime/Compose"
import type { Caller, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { ListKind } from "../../EventBus.ts"
import type { Key } from "../../RequestState.ts"
import type { Entry } from "./entryStore.ts"
import { PlacedList } from "./placement.ts"
import { HookList, type Operation } from "./hookList.ts"
import type { ServerObserver } from "../base/outcome.ts"
import type { OutgoingNotification } from "../base/pendingNotifications.ts"

/** The key of the members of public services that only this package uses. */
export const internals: unique symbol = Symbol.for("@skein/server/internals")

/** The key of the function of a server that `skein inspect --fleet` calls, of another copy of this package. */
export const localPartsKey: unique symbol = Symbol.for("@skein/server/localParts")

/** The effect that handles a request for an entry. It fails with the JSON-RPC error that the client receives. */
export type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>

/**
 * Completes the text of an argument or a variable: returns the candidates, the best first. A `completion` is sent as it
 * is, with its `total` and `hasMore`: the candidates may be a part of those that another server has.
 */
export type Completer = (
  value: string,
  others: { readonly [name: string]: string }
) => Handled<ReadonlyArray<string> | CompleteResult["completion"]>

/** The completers of a prompt's arguments or a template's variables, by name. */
export type Completers = ReadonlyMap<string, Completer>

/** A tool and the function that runs its calls. */
export interface ToolEntry extends Entry<WireTool.Tool> {
  /** The arguments that a client of 2026-07-28 copies into HTTP headers. */
  readonly headers?: ReadonlyArray<XMcpHeader.Param> | undefined
  /** Values for the extensions of this server (`Tool.Options.metadata`). */
  readonly metadata?: Context.Context<never> | undefined
  /** Whether no list shows the tool. It can be called by its name all the same, unless it is `indirect`. */
  readonly unlisted?: (() => boolean) | undefined
  /** Whether the tool can be called only through another one that redirects to it. */
  readonly indirect?: (() => boolean) | undefined
  /** Returns the params of the call of another tool that a call stands for. It runs before all middleware. */
  readonly redirect?: ((params: JsonObject, caller: Caller) => JsonObject | undefined) | undefined
  /**
   * Returns the name, in the registry of the entry, of another tool that the author of this one names. Only tools that call
   * others have it.
   */
  readonly nameOf?: ((own: string) => string) | undefined
  /** Labels for the author of the server (`Tool.Options.tags`). */
  readonly tags?: ReadonlyArray<string> | undefined
  readonly call: (args: JsonObject, request: RequestContext) => Handled<CallTool.CallToolResult>
}

/** Reads a resource. */
export type Reader = (request: RequestContext) => Handled<WireResource.ReadResourceResult>

/**
 * Watches a resource for its subscribers until the scope closes: subscribes to it at another server, for example. It
 * runs when the first subscriber of the URI comes, and the scope closes when the last one leaves. The subscription is
 * confirmed when the effect has succeeded, and refused with its failure.
 */
export type Watch = (uri: string) => Effect.Effect<void, McpError.McpError, Scope.Scope>

/** A resource and its reader. */
export interface ResourceEntry extends Entry<WireResource.Resource> {
  readonly read: Reader
  readonly watch?: Watch | undefined
}

/** A resource template and the readers of the resources that match it. */
export interface TemplateEntry extends Entry<WireResource.ResourceTemplate> {
  /** The names of its variables. */
  readonly names: ReadonlyArray<string>
  /** Returns the reader of a resource, or `undefined` if the URI does not match the template. */
  readonly match: (uri: string) => Reader | undefined
  readonly complete?: Completers | undefined
  /** Watches a resource that matches the template. */
  readonly watch?: Watch | undefined
  /**
   * Decides whether a caller may subscribe to a resource that matches, where the reader decides who may read it. All callers
   * that see the template by default. To any other caller the resource does not exist.
   */
  readonly admits?: ((uri: string, caller: Caller) => Effect.Effect<boolean>) | undefined
  /**
   * `true` for a template that no list shows. Its resources can be read and subscribed to. The other templates are tried
   * first. If several unlisted ones match, the next one is tried after `ResourceNotFound`.
   */
  readonly unlisted?: boolean | undefined
}

/** A prompt and the function that fills it in. */
export interface PromptEntry extends Entry<WirePrompt.Prompt> {
  readonly get: (args: JsonObject, request: RequestContext) => Handled<WirePrompt.GetPromptResult>
  readonly complete?: Completers | undefined
}

/** The options of a server that the methods of its extensions use. */
export interface ServerPages {
  /** How many entries a page of a list has at most. */
  readonly pageSize: number
}

/** A method and its handler. Made by `Extension.method`. */
export interface ExtensionMethod {
  readonly method: Method.AnyRequest
  readonly run: (
    params: unknown,
    request: RequestContext,
    server: ServerPages
  ) => Handled<Codec.Writable<unknown>>
}

/** A call of a tool whose arguments are not decoded yet. */
export interface ToolCall {
  readonly tool: ToolEntry
  readonly params: CallTool.CallToolRequestParams
  readonly request: RequestContext
}

/** The result of a call of a tool: the tool's result, or the handle of a task. */
export type ToolCallResult = Handled<Codec.Writable<CallTool.CallToolResult>>

/**
 * Sends a notification to a subscriber. While the subscriber is slow to read, only the last notification of each key is
 * kept.
 */
export type Publish = (key: string, method: string, params: JsonObject) => void

/** The part of an extension in one `subscriptions/listen`. */
export interface Subscription {
  /** The members that the extension adds to the acknowledgment of the server. */
  readonly agreed: JsonObject
  /** Runs from the acknowledgment on. It is interrupted when the subscription ends. */
  readonly run: (publish: Publish) => Effect.Effect<void>
}

/**
 * The addition of an extension to a server. Every member but `name` is optional.
 */
export interface Extension {
  /** Its identifier, or a name for messages. */
  readonly name: string
  /**
   * Whether a server has at most one extension of this name, including those of its parts and of the servers that are
   * mounted in it: `false` by default. A second one is a defect when the server is built.
   */
  readonly isSingle?: boolean | undefined
  /**
   * The capabilities that the server declares to this caller. The `extensions` members of several extensions are
   * merged.
   */
  readonly capabilities?: ((caller: Caller) => JsonObject | undefined) | undefined
  /**
   * The kinds of entries that the extension may add while the server runs. The server declares them from the start, as
   * with `McpServer.Options.declareListChanged`.
   */
  readonly lists?: ReadonlyArray<ListKind> | undefined
  readonly methods?: ReadonlyArray<ExtensionMethod> | undefined
  /**
   * Receives every call of a tool and either answers it or calls `next`. The first extension is the outermost. It runs
   * for every call, so it must decide quickly.
   */
  readonly call?: ((call: ToolCall, next: (call: ToolCall) => ToolCallResult) => ToolCallResult) | undefined
  /**
   * Takes part in a `subscriptions/listen` with these filters. It returns `undefined` if no filter belongs to the
   * extension.
   */
  readonly listen?:
    | ((
      notifications: JsonObject,
      request: RequestContext
    ) => Effect.Effect<Subscription | undefined, McpError.McpError, McpRequest>)
    | undefined
  /**
   * Services for other extensions of the server, which find them with `Extension.list` once all definitions are
   * registered.
   */
  readonly services?: Context.Context<never> | undefined
  /** The work that runs now outside of clients' requests, for `McpServer.inspect`. */
  readonly running?: Iterable<RequestContext> | undefined
  /**
   * Runs once all definitions of the server are registered, at the same time as that of the other extensions, or when the
   * extension is added to a server that runs. The scope closes with those of the other extensions, at the same time, and before
   * the definitions are removed, or before the extension is removed.
   */
  readonly ready?: Effect.Effect<void, never, Scope.Scope> | undefined
}

type Wrap = ComposeLayer<RequestContext, ReturnType<Dispatcher<McpRequest>>>

/** A part of a server, such as a mounted one, with middleware around the requests for its own entries. */
export interface PartMiddleware {
  readonly stack: MiddlewareStack
  /** Returns the request with the names that the part uses, or `undefined` if it is not for an entry of the part. */
  readonly enter: (request: RequestContext) => RequestContext | undefined
  /** Returns the request with the names that are used around the part. */
  readonly leave: (request: RequestContext) => RequestContext
  /** Provides the services that requests of the part start with. */
  readonly provide: <A, E>(effect: Effect.Effect<A, E, McpRequest>) => Effect.Effect<A, E, McpRequest>
}

/** The middleware of a server in the order of the definitions, outermost first. */
export class MiddlewareStack extends PlacedList<Wrap> {
  /** The observer of events that no middleware sees: `undefined` unless `Telemetry.layer` is among the definitions. */
  observer: ServerObserver | undefined = undefined
  /** Grows with every change. */
  version = 0

  /** The parts that have middleware of their own, inside of all middleware here. */
  parts: ReadonlyArray<PartMiddleware> = []
  /** The stacks that this one is a part of. */
  readonly #around = new Set<MiddlewareStack>()

  /** Whether neither the server nor a part of it has middleware. */
  get isEmpty(): boolean {
    return this.all.length === 0 && this.parts.every(({ stack }) => stack.isEmpty)
  }

  /** Adds the middleware of a part until the scope closes. */
  addPart(part: PartMiddleware): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => {
        this.parts = [...this.parts, part]
        part.stack.#around.add(this)
        this.changed()
      }),
      () =>
        Effect.sync(() => {
          this.parts = this.parts.filter((other) => other !== part)
          if (!this.parts.some(({ stack }) => stack === part.stack)) part.stack.#around.delete(this)
          this.changed()
        })
    ))
  }

  protected override changed(): void {
    this.version++
    for (const stack of this.#around) stack.changed()
  }
}

/** The extensions of a server, in the order of the definitions. */
export class ExtensionList extends PlacedList<Extension> {
  /** The extensions that take part in tool calls, as layers around the call. */
  calling: ReadonlyArray<ComposeLayer<ToolCall, ToolCallResult>> = []
  /** The methods of the extensions, by name. One name may have several methods, for different revisions. */
  methods: ReadonlyMap<string, ReadonlyArray<ExtensionMethod>> = new Map()

  readonly #around: ExtensionList | undefined
  /** The scope of the work of all extensions, once the server runs. A part has none. */
  #working: Scope.Closeable | undefined = undefined
  /** The scopes of the work of single extensions. */
  readonly #scopes = new Map<Extension, Scope.Closeable>()

  /** `around` is the list of the server that these are the extensions of a part of. */
  constructor(around?: ExtensionList) {
    super()
    this.#around = around
  }

  /**
   * Runs `ready` of all extensions at the same time, and from now on that of each extension that is added. The work of an
   * extension ends with `working`, or before the extension is removed.
   */
  start(working: Scope.Closeable): Effect.Effect<void> {
    this.#working = working
    return Effect.forEach(this.all, (extension) => this.#begin(extension), { concurrency: "unbounded", discard: true })
  }

  #begin(extension: Extension): Effect.Effect<void> {
    const { ready } = extension
    if (ready === undefined || this.#working === undefined) return Effect.void
    const scope = Scope.forkUnsafe(this.#working)
    this.#scopes.set(extension, scope)
    return Effect.updateContext(Scope.provide(ready, scope), withoutMemoMap)
  }

  #end(extension: Extension): Effect.Effect<void> {
    const scope = this.#scopes.get(extension)
    this.#scopes.delete(extension)
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  }

  /** The extensions here, and then those of the server around a part. */
  get available(): ReadonlyArray<Extension> {
    return this.#around === undefined ? this.all : [...this.all, ...this.#around.available]
  }

  /**
   * Adds an extension until the scope closes. The server around a part has its methods and its capabilities, but calls of
   * tools reach it only if the tools are in the part. While the server runs, `ready` of the extension runs too.
   */
  override add(value: Extension): Effect.Effect<void, never, Scope.Scope> {
    if (this.#around !== undefined) {
      return Effect.andThen(super.add(withoutMembers(value, "ready")), this.#around.add(withoutMembers(value, "call")))
    }
    return super.add(value).pipe(
      Effect.andThen(Effect.addFinalizer(() => this.#end(value))),
      Effect.andThen(this.#begin(value))
    )
  }

  protected override problem(value: Extension): Error | undefined {
    if (value.isSingle !== true || !this.all.some((other) => isAnother(other, value))) return undefined
    const where = "among its definitions, or in a server that is mounted in it"
    return new Error(`The extension ${value.name} is twice in one server: ${where}. Remove one of them`)
  }

  protected override changed(): void {
    this.calling = this.all.filter(({ call }) => call !== undefined).map((extension) => (next) => (toolCall) =>
      extension.call!(toolCall, next)
    )
    this.methods = Map.groupBy(this.all.flatMap(({ methods }) => methods ?? []), ({ method }) => method.name)
  }
}

/**
 * The memo map of a server around this one belongs to another catalog. An entry that an extension adds would count as one of
 * the server around, which would build this one once for each of its mounts.
 */
const withoutMemoMap = (context: Context.Context<never>): Context.Context<never> =>
  Context.omit(Layer.CurrentMemoMap)(context as Context.Context<Layer.CurrentMemoMap>)

const sourceKey: unique symbol = Symbol.for("@skein/server/extension")

/** The extension that another one was made of by `withoutMembers`. */
const sourceOf = (extension: Extension): Extension =>
  (extension as { readonly [sourceKey]?: Extension })[sourceKey] ?? extension

const isAnother = (one: Extension, other: Extension): boolean =>
  one.name === other.name && sourceOf(one) !== sourceOf(other)

/** Returns an extension without some of its members. It may have getters, which a copy would read once. */
export const withoutMembers = (extension: Extension, ...members: ReadonlyArray<keyof Extension>): Extension => {
  const source = sourceOf(extension)
  const removed = Object.fromEntries(members.map((member) => [member, { value: undefined }]))
  return Object.create(extension, { ...removed, [sourceKey]: { value: source } })
}

/** A call of a tool. The arguments are not validated yet. */
export interface CallOperation extends Operation {
  readonly entry: ToolEntry
  readonly arguments: JsonObject
}

/** A read of a resource. The entry is that of the resource, or of the template that its URI matches. */
export interface ReadOperation extends Operation {
  readonly entry: Entry<WireResource.Resource | WireResource.ResourceTemplate>
  readonly uri: string
}

/** A request for a prompt. The arguments are not validated yet. */
export interface PromptOperation extends Operation {
  readonly entry: PromptEntry
  readonly arguments: JsonObject
}

/** The middleware of single operations. */
export class OperationHooks {
  readonly calls = new HookList<CallOperation, Effect.Success<ToolCallResult>>()
  readonly reads = new HookList<ReadOperation, WireResource.ReadResourceResult>()
  readonly prompts = new HookList<PromptOperation, WirePrompt.GetPromptResult>()
  /** The lists, by method. */
  readonly lists: { readonly [method: string]: HookList<Operation, ReadonlyArray<unknown>> }

  /** A part of a server has operations of its own, and the lists of the server. */
  constructor(lists?: OperationHooks["lists"]) {
    this.lists = lists ?? {
      "tools/list": new HookList(),
      "resources/list": new HookList(),
      "resources/templates/list": new HookList(),
      "prompts/list": new HookList()
    }
  }
}

/**
 * Handles calls of tools that other tools make: the server that received the request provides it to the request. A
 * mounted server uses that of the server around it, so that all middleware sees the call.
 */
export class InnerCalls extends Context.Service<InnerCalls, {
  /**
   * Handles a call that is derived from the present request, through all middleware, guards and extensions. Its name is
   * the one that the author of the present tool uses.
   */
  readonly call: Dispatcher<McpRequest>
}>()("@skein/server/internal/InnerCalls") {}

/** Receives the changes of a catalog and notifies clients: the server's `SubscriptionRegistry`. */
export interface ChangeListener {
  /** A list has changed in this process. */
  readonly listChanged: (kind: ListKind) => void
  readonly resourceUpdated: (uri: string, parent: string | undefined) => Effect.Effect<void>
  /** Sends a notification to the session of a caller. Returns `false` if no session is open. */
  readonly notify: (caller: Caller, key: string, notification: OutgoingNotification) => boolean
  /** Returns the scope that closes when the session of a caller ends, or `undefined` if no session is open. */
  readonly session: (caller: Caller) => Scope.Scope | undefined
  /** Returns the id of the session of a caller, if other processes serve it too. */
  readonly sharedSession: (caller: Caller) => string | undefined
}

/** The state of a catalog that only this package uses. */
export interface CatalogInternals {
  readonly middleware: MiddlewareStack
  readonly extensions: ExtensionList
  /** The middleware of single operations. */
  readonly operations: OperationHooks
  /** The dispatcher inside of the middleware of the whole server. Set once the server is built, and shared with its parts. */
  readonly inner: { dispatch: Dispatcher<McpRequest> | undefined }
  /** The services that every request of the server starts with. The catalog is one of them. */
  readonly base: Context.Context<never>
  /** Closes when the server does. */
  readonly scope: Scope.Scope
  /** The kinds that the server declares from the start, whether or not it has entries of them. */
  readonly declared: ReadonlyArray<ListKind>
  /** The keys of an endpoint (`NodeHttp.Options`), for a server whose `RequestState` has none. Set before the first request. */
  readonly stateKeys: { ofEndpoint: ReadonlyArray<Key> | undefined }
  /** Set once the server is built. */
  readonly changes: { listener: ChangeListener | undefined }
  /** Called with the URI of each resource whose change is reported, in this process or another one. */
  readonly updateListeners: Set<(uri: string) => void>
}
