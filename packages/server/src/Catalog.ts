/**
 * What a server offers now: its tools, resources, resource templates and prompts.
 *
 * A catalog is filled by the layers of the definitions (`Tool.layer` and its kin); an entry leaves it when the scope of its
 * layer closes. Listings come in the order of their names, so that they are the same whatever the layers did.
 */
import type * as CallTool from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as WirePrompt from "@skein/protocol/Prompt"
import type * as WireResource from "@skein/protocol/Resource"
import type * as WireTool from "@skein/protocol/Tool"
import type * as XMcpHeader from "@skein/protocol/XMcpHeader"
import type { Caller, Dispatcher, Exchange, McpRequest } from "@skein/runtime/Exchange"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { DefinitionError } from "./DefinitionError.ts"

/** What handles a request for an entry. */
export type Handled<A> = Effect.Effect<A, McpError.McpError, McpRequest>

/**
 * A handler asks for a `Scope`, and the only ones around would keep what it acquires for as long as the connection or the server
 * lives. So nobody can provide this: wrap the handler's effect in `Effect.scoped`, and the scope is the call's own.
 */
export interface UnscopedHandler {
  readonly UnscopedHandler: unique symbol
}

/** Whether a caller may see an entry: in lists and, alike, by its name. What one may not see does not exist. */
export type Visible = (caller: Caller) => boolean

/** What all entries have in common. */
export interface Entry<out Definition> {
  readonly definition: Definition
  /** Everybody, where it is absent. */
  readonly visible?: Visible | undefined
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
  readonly call: (args: JsonObject, exchange: Exchange) => Handled<CallTool.CallToolResult>
}

/** Reads a resource. */
export type Reader = (exchange: Exchange) => Handled<WireResource.ReadResourceResult>

/** A resource and what reads it. */
export interface ResourceEntry extends Entry<WireResource.Resource> {
  readonly read: Reader
}

/** A template and what reads a resource that matches it; `undefined` for one that does not. */
export interface TemplateEntry extends Entry<WireResource.ResourceTemplate> {
  readonly match: (uri: string) => Reader | undefined
  readonly complete?: Completers | undefined
}

/** A prompt and what fills it in. */
export interface PromptEntry extends Entry<WirePrompt.Prompt> {
  readonly get: (args: JsonObject, exchange: Exchange) => Handled<WirePrompt.GetPromptResult>
  readonly complete?: Completers | undefined
}

/** The entries of one kind, by name; a resource's name here is its URI. */
export class Registry<A extends Entry<unknown>> {
  readonly #kind: DefinitionError["kind"]
  readonly #entries = new Map<string, A>()
  #sorted: ReadonlyArray<readonly [string, A]> | undefined = []
  #version = 0

  constructor(kind: DefinitionError["kind"]) {
    this.#kind = kind
  }

  /** Grows with every change. */
  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#entries.size
  }

  get(name: string): A | undefined {
    return this.#entries.get(name)
  }

  /** An entry, if the caller may see it. */
  seen(name: string, caller: Caller): A | undefined {
    const entry = this.#entries.get(name)
    return entry?.visible?.(caller) === false ? undefined : entry
  }

  /** All entries in the order of their names, by code unit. */
  get sorted(): ReadonlyArray<readonly [string, A]> {
    return this.#sorted ??= [...this.#entries].sort(([a], [b]) => a < b ? -1 : 1)
  }

  /** Offers an entry until the scope closes. Fails with `Duplicate` when the name is taken. */
  add(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        if (this.#entries.has(name)) {
          const message = `A ${this.#kind} with the name ${JSON.stringify(name)} is offered already`
          return Effect.fail(new DefinitionError({ reason: "Duplicate", kind: this.#kind, definition: name, message }))
        }
        this.#entries.set(name, entry)
        this.#changed()
        return Effect.void
      }),
      () =>
        Effect.sync(() => {
          this.#entries.delete(name)
          this.#changed()
        })
    )
  }

  #changed(): void {
    this.#sorted = undefined
    this.#version++
  }
}

/** The middleware of a server, outermost first. */
export class Stack {
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

/** What a server offers. */
export class Catalog extends Context.Service<Catalog, {
  readonly tools: Registry<ToolEntry>
  readonly resources: Registry<ResourceEntry>
  readonly templates: Registry<TemplateEntry>
  readonly prompts: Registry<PromptEntry>
  /** What stands around its dispatcher. */
  readonly middleware: Stack
  /** The services that every request of the server starts with. */
  readonly base: Context.Context<never>
}>()("@skein/server/Catalog") {}

/** An empty catalog, for requests that start with the services of `base`. */
export const make = (base: Context.Context<never>): Catalog["Service"] => ({
  tools: new Registry("tool"),
  resources: new Registry("resource"),
  templates: new Registry("resource template"),
  prompts: new Registry("prompt"),
  middleware: new Stack(),
  base
})
