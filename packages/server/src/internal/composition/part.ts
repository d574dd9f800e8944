/**
 * A part of a server: a catalog of its own, whose entries appear in the catalog around it under other names.
 */
import type * as CallTool from "@skein/protocol/CallTool"
import type * as Wire from "@skein/protocol/Content"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import type { McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  Catalog,
  type Completers,
  type PromptEntry,
  type Reader,
  type ResourceEntry,
  type TemplateEntry,
  type ToolEntry,
  type Watch
} from "../../Catalog.ts"
import { DefinitionError, InvalidUri, InvalidUriTemplate } from "../../DefinitionError.ts"
import type { Entry } from "../../Registry.ts"
import { internals, type PartMiddleware, type ToolCall } from "../catalog/catalogState.ts"
import type { Projection } from "../catalog/mirror.ts"
import { omitUndefined } from "../base/json.ts"
import { isUri } from "../catalog/validateDefinition.ts"
import { callThrough } from "../dispatch/callTool.ts"
import { provideRequest } from "../catalog/hookList.ts"
import type { Naming } from "./naming.ts"
import { linking } from "./pageTools.ts"
import { redirectingTo } from "../dispatch/redirect.ts"
import { isVisible } from "../catalog/entryStore.ts"

/** Provides the services that the requests of a part start with. */
export type ProvidePart = <A, E>(effect: Effect.Effect<A, E, McpRequest>) => Effect.Effect<A, E, McpRequest>

/** The part and the name in it of an entry that belongs to a part. */
interface Origin {
  readonly part: object
  readonly name: string
}

const originKey: unique symbol = Symbol.for("@skein/server/origin")

const originOf = (entry: Entry<unknown> | undefined): Origin | undefined =>
  (entry as { readonly [originKey]?: Origin } | undefined)?.[originKey]

/** The params that name an entry, by method. */
const namedBy: ReadonlyMap<string, "tools" | "prompts" | "uri" | "ref"> = new Map([
  ["tools/call", "tools"],
  ["prompts/get", "prompts"],
  ["resources/read", "uri"],
  ["resources/subscribe", "uri"],
  ["resources/unsubscribe", "uri"],
  ["completion/complete", "ref"]
])

const namesIn = (params: JsonObject | undefined): JsonObject =>
  omitUndefined({ name: params?.["name"], uri: params?.["uri"], ref: params?.["ref"] })

export class Part {
  /** The requests around the part, by those that its middleware receives. */
  readonly #entered = new WeakMap<RequestContext, RequestContext>()
  readonly #inside: Catalog["Service"]
  /** The catalog that the requests of clients name entries of. A transform around the part has a view of it. */
  readonly #outside: Catalog["Service"]
  readonly #naming: Naming
  readonly #provide: ProvidePart

  constructor(inside: Catalog["Service"], outside: Catalog["Service"], naming: Naming, provide: ProvidePart) {
    this.#inside = inside
    this.#outside = Context.getOrUndefined(outside[internals].base, Catalog) ?? outside
    this.#naming = naming
    this.#provide = provide
  }

  // ---- entries

  readonly tools: Projection<ToolEntry> = {
    name: (own) => this.#naming.name(own, "tool"),
    entry: (entry, own, name) =>
      Result.succeed(linking({
        ...entry,
        ...this.#origin(own),
        definition: { ...entry.definition, name },
        ...redirectingTo(entry, this.tools.name),
        call: (args, request) => this.#run(this.#call(entry, own, args, request), this.#toolResult)
      }, { tools: () => this.#inside.tools, nameOf: this.tools.name, uriOf: this.outsideUri }))
  }

  readonly prompts: Projection<PromptEntry> = {
    name: (own) => this.#naming.name(own, "prompt"),
    entry: (entry, own, name) =>
      Result.succeed({
        ...entry,
        ...this.#origin(own),
        definition: { ...entry.definition, name },
        complete: this.#completers(entry.complete),
        get: (args, request) =>
          this.#run(Effect.suspend(() => this.#get(entry, own, args, request)), (result) => ({
            ...result,
            messages: result.messages.map((message) => ({ ...message, content: this.#block(message.content) }))
          }))
      })
  }

  readonly resources: Projection<ResourceEntry> = {
    name: (own) => this.#naming.uri(own),
    entry: (entry, own, uri) => {
      if (!isUri(uri)) {
        const message = `The resource ${quote(own)} cannot be mounted: ${quote(uri)} does not conform to RFC 3986`
        return Result.fail(
          new DefinitionError({ reason: new InvalidUri({ message }), kind: "resource", definition: uri })
        )
      }
      const { definition } = entry
      const name = definition.name === own ? uri : definition.name
      return Result.succeed({
        ...entry,
        ...this.#origin(own),
        definition: { ...definition, uri, name },
        read: this.#reader(entry, own, entry.read),
        ...this.#watch(entry)
      })
    }
  }

  readonly templates: Projection<TemplateEntry> = {
    name: (own) => this.#naming.uri(own),
    entry: (entry, own, uriTemplate) => {
      const compiled = UriTemplate.make(uriTemplate)
      // The text of an unlisted template only identifies it.
      const needsScheme = uriTemplate !== own && entry.unlisted !== true && !/^[a-z][a-z\d+.-]*:/i.test(uriTemplate)
      if (Result.isFailure(compiled) || needsScheme) {
        const problem = Result.isFailure(compiled) ? compiled.failure : "it needs a scheme before its first variable"
        const message = `The resource template ${quote(own)} cannot be mounted as ${quote(uriTemplate)}: ${problem}`
        const reason = new InvalidUriTemplate({ message })
        return Result.fail(new DefinitionError({ reason, kind: "resource template", definition: uriTemplate }))
      }
      return Result.succeed({
        ...entry,
        ...this.#origin(own),
        definition: { ...entry.definition, uriTemplate },
        complete: this.#completers(entry.complete),
        match: (uri) => {
          const ownUri = this.#naming.ownUri(uri)
          const read = ownUri === undefined ? undefined : entry.match(ownUri)
          return read && this.#reader(entry, ownUri!, read)
        },
        ...this.#watch(entry),
        ...this.#admits(entry)
      })
    }
  }

  #origin(name: string): { readonly [originKey]: Origin } {
    return { [originKey]: { part: this, name } }
  }

  #run<A>(effect: Effect.Effect<A, never, McpRequest>, change: (result: A) => A): Effect.Effect<A, never, McpRequest>
  #run<A, E>(effect: Effect.Effect<A, E, McpRequest>, change: (result: A) => A): Effect.Effect<A, E, McpRequest>
  #run<A, E>(effect: Effect.Effect<A, E, McpRequest>, change: (result: A) => A): Effect.Effect<A, E, McpRequest> {
    return Effect.map(this.#provide(effect), change)
  }

  /** Calls a tool through the middleware and the extensions of the part. */
  #call(entry: ToolEntry, name: string, args: JsonObject, request: RequestContext): ReturnType<ToolEntry["call"]> {
    const { extensions: { calling }, operations: { calls } } = this.#inside[internals]
    if (calls.all.length === 0 && calling.length === 0) return entry.call(args, request)
    const params = { ...request.params, name, arguments: args }
    const own: ToolCall = { tool: entry, params: params as ToolCall["params"], request: request.with({ params }) }
    // The result may be the handle of a task, which is encoded as a result is.
    return callThrough(this.#inside, own, request) as ReturnType<ToolEntry["call"]>
  }

  #get(entry: PromptEntry, name: string, args: JsonObject, request: RequestContext): ReturnType<PromptEntry["get"]> {
    const { prompts } = this.#inside[internals].operations
    if (prompts.all.length === 0) return entry.get(args, request)
    const own = request.with({ params: { ...request.params, name, arguments: args } })
    return prompts.run(
      { entry, arguments: args, caller: request.caller, request: own },
      (changed) => provideRequest(request, changed.request, entry.get(changed.arguments, changed.request))
    )
  }

  #reader(entry: ResourceEntry | TemplateEntry, uri: string, read: Reader): Reader {
    const run: Reader = (request) => {
      const { reads } = this.#inside[internals].operations
      if (reads.all.length === 0) return read(request)
      const own = request.with({ params: { ...request.params, uri } })
      return reads.run({ entry, uri, caller: request.caller, request: own }, (changed) => read(changed.request))
    }
    return (request) =>
      this.#run(Effect.suspend(() => run(request)), (result) => ({
        ...result,
        contents: result.contents.map((contents) => ({ ...contents, uri: this.outsideUri(contents.uri) }))
      }))
  }

  #watch(entry: ResourceEntry | TemplateEntry): { readonly watch?: Watch } {
    const { watch } = entry
    return watch === undefined ? {} : { watch: (uri) => watch(this.#naming.ownUri(uri) ?? uri) }
  }

  #admits({ admits }: TemplateEntry): Pick<TemplateEntry, "admits"> {
    return admits === undefined ? {} : { admits: (uri, caller) => admits(this.#naming.ownUri(uri) ?? uri, caller) }
  }

  #completers(own: Completers | undefined): Completers | undefined {
    return own && new Map(Array.from(own, ([name, complete]) => [
      name,
      (value, others) => this.#provide(Effect.suspend(() => complete(value, others)))
    ]))
  }

  // ---- URIs

  /** Returns the URI outside of the part of a resource that the part has. Other URIs stay as they are. */
  readonly outsideUri = (uri: string): string => {
    const { resources, templates } = this.#inside
    const isOwn = resources.get(uri) !== undefined ||
      templates.sorted.some(([, entry]) => entry.match(uri) !== undefined)
    return isOwn ? this.#naming.uri(uri) : uri
  }

  readonly #block = (block: Wire.ContentBlock): Wire.ContentBlock => {
    if (block.type === "resource_link") return { ...block, uri: this.outsideUri(block.uri) }
    if (block.type !== "resource") return block
    return { ...block, resource: { ...block.resource, uri: this.outsideUri(block.resource.uri) } }
  }

  readonly #toolResult = (result: CallTool.CallToolResult): CallTool.CallToolResult =>
    Array.isArray(result.content) && result.content.some(({ type }) => type === "resource_link" || type === "resource")
      ? { ...result, content: result.content.map(this.#block) }
      : result

  // ---- middleware

  get middleware(): PartMiddleware {
    return {
      stack: this.#inside[internals].middleware,
      provide: this.#provide,
      enter: (request) => {
        const params = this.#rename(request)
        if (params === undefined) return undefined
        const own = request.with({ params })
        this.#entered.set(own, request)
        return own
      },
      leave: (request) => {
        let own: RequestContext | undefined = request
        while (own !== undefined && !this.#entered.has(own)) own = own.source
        const outside = own === undefined ? request : this.#entered.get(own)!
        if (own === request || own === undefined) return outside
        // A middleware of the part has changed the params.
        return outside.with({ params: { ...request.params, ...namesIn(outside.params) }, caller: request.caller })
      }
    }
  }

  /** Returns the params of a request with the part's own names; `undefined` if it is not for an entry of the part. */
  #rename({ caller, method, params }: RequestContext): JsonObject | undefined {
    const kind = namedBy.get(method)
    if (kind === undefined || params === undefined) return undefined
    if (kind === "tools" || kind === "prompts") {
      const { name } = params
      const own = typeof name === "string" ? this.#own(this.#outside[kind].seen(name, caller)) : undefined
      return own === undefined ? undefined : { ...params, name: own }
    }
    const ref = kind === "ref" && isObject(params["ref"]) ? params["ref"] : undefined
    if (ref?.["type"] === "ref/prompt") {
      const { name } = ref
      const own = typeof name === "string" ? this.#own(this.#outside.prompts.seen(name, caller)) : undefined
      return own === undefined ? undefined : { ...params, ref: { ...ref, name: own } }
    }
    const uri = (ref ?? params)["uri"]
    const own = typeof uri === "string" ? this.#ownUri(uri, caller) : undefined
    if (own === undefined) return undefined
    return ref === undefined ? { ...params, uri: own } : { ...params, ref: { ...ref, uri: own } }
  }

  #own(entry: Entry<unknown> | undefined): string | undefined {
    const origin = originOf(entry)
    return origin?.part === this ? origin.name : undefined
  }

  #ownUri(uri: string, caller: RequestContext["caller"]): string | undefined {
    const { resources, templates } = this.#outside
    const named = resources.seen(uri, caller) ?? templates.seen(uri, caller)
    if (named !== undefined) return this.#own(named)
    const matching = templates.sorted.find(([, entry]) => isVisible(entry, caller) && entry.match(uri) !== undefined)
    return this.#own(matching?.[1]) === undefined ? undefined : this.#naming.ownUri(uri)
  }
}
