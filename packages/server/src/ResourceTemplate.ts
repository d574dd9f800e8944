/**
 * Resource templates: families of resources, by an RFC 6570 URI template.
 *
 * `ResourceTemplate.layer` binds a template to what reads its resources, and to what completes its variables;
 * `ResourceTemplate.add` and `ResourceTemplate.replace` do so while the server runs.
 *
 * @example
 * const note = ResourceTemplate.make("notes://{folder}/{id}", {
 *   name: "note",
 *   mimeType: "text/markdown",
 *   variables: { folder: Schema.Literals(["work", "home"]), id: Schema.NumberFromString }
 * })
 * const live = ResourceTemplate.layer(note, ({ folder, id }) => Effect.flatMap(Notes, (notes) => notes.read(folder, id)), {
 *   complete: { id: (typed, { folder }) => Effect.flatMap(Notes, (notes) => notes.idsLike(typed, folder)) }
 * })
 */
import type * as Common from "@skein/protocol/Common"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Hint } from "./Caching.ts"
import type { Catalog } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { readResource, type ResourceBody } from "./internal/definitions/readResource.ts"
import { makeCompleters } from "./internal/methods/completion.ts"
import type { Visible } from "./Registry.ts"
import { isUri } from "./internal/definitions/validateDefinition.ts"
import { omitUndefined } from "./internal/json.ts"

/** What reads a variable from the text in the URI: text for a plain one, a list of texts for one that explodes (`{x*}`). */
export type Variables = {
  readonly [name: string]: Schema.ConstraintCodec<unknown, string | ReadonlyArray<string> | undefined>
}

/** What describes a template. Its caching hints tell how long, and by whom, the contents of its resources may be kept. */
export interface Options<V extends Variables> extends Hint {
  /** A name for programs. */
  readonly name: string
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /**
   * Schemas for the variables, `{ id: Schema.NumberFromString }` for instance. A URI whose variables do not fit does not match.
   * Without them each variable is text, or a list of texts where it explodes.
   */
  readonly variables?: V | undefined
  readonly annotations?: Common.Annotations | undefined
  /** Who may see it, and so read its resources; everybody by default. To others there is none. It must be quick. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  readonly _meta?: Common.Meta | undefined
}

/**
 * The names in a template's expressions, with the type of what each matches. Those of `{a}` and `{+a}` are always there; those of
 * `{/a}`, `{?a}`, `{&a}` and `{#a}` may be absent.
 */
export type Matched<T extends string> = string extends T ? { readonly [name: string]: string | ReadonlyArray<string> }
  : Flat<
    & { readonly [Name in Certain<Expressions<T>> as Bare<Name>]: Value<Name> }
    & { readonly [Name in Possible<Expressions<T>> as Bare<Name>]?: Value<Name> }
  >

type Flat<A> = { readonly [K in keyof A]: A[K] }
type Expressions<T extends string> = T extends `${string}{${infer Expression}}${infer Rest}` ?
  Expression | Expressions<Rest>
  : never
type Certain<E extends string> = E extends `${"#" | "/" | "?" | "&"}${string}` ? never
  : Split<E extends `+${infer Names}` ? Names : E>
type Possible<E extends string> = E extends `${"#" | "/" | "?" | "&"}${infer Names}` ? Split<Names> : never
type Split<L extends string> = L extends `${infer Head},${infer Tail}` ? Head | Split<Tail> : L
type Bare<Name extends string> = Name extends `${infer N}*` ? N : Name
type Value<Name extends string> = Name extends `${string}*` ? ReadonlyArray<string> : string

/** A template's definition. `V` is what its reader gets. */
export interface ResourceTemplate<V> {
  readonly uriTemplate: string
  readonly options: Omit<Options<never>, "variables">
  readonly variables: { readonly fields: Variables; readonly schema: Schema.ConstraintCodec<V, unknown> } | undefined
}

/** Defines a template. */
export const make = <const T extends string, V extends Variables = never>(
  uriTemplate: T,
  // No schema for a variable that the template does not have: such a template would never match.
  options: Options<V> & {
    readonly variables?:
      | {
        readonly [Name in Exclude<keyof V, keyof Matched<T>>]: `The template has no variable ${Name & string}`
      }
      | undefined
  }
): ResourceTemplate<[V] extends [never] ? Matched<T> : Schema.Struct.Type<V>> => {
  const { variables, ...rest } = options
  return {
    uriTemplate,
    options: rest,
    variables: variables === undefined
      ? undefined
      : { fields: variables, schema: Schema.Struct(variables as Schema.Struct.Fields) as never }
  }
}

/**
 * Offers a template with what reads the resources that match it, and with what completes its variables. Those whose schema is of
 * literals complete by themselves. What is no URI by RFC 3986 matches nothing. The reader gets the variables, percent-decoded, and
 * the whole URI; **check them before they name a file or a row**: `..%2F` is decoded too. Resources with their own
 * `Resource.layer` come first, then the templates in the order of their text.
 *
 * What the reader fails with becomes `-32603` with its message, an `McpError` (`Resource.notFound`) keeps its own code. Fails
 * with `DefinitionError` when the template is malformed or is offered already.
 */
export const layer = <
  V,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof V & string> = {}
>(
  template: ResourceTemplate<V>,
  read: (variables: V, uri: string) => Effect.Effect<ResourceBody, E, R>,
  options?: Completion.Options<keyof V & string, C>
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.layer(offer("add", template, read, options?.complete))

/** Offers a template with its reader until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <
  V,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof V & string> = {}
>(
  template: ResourceTemplate<V>,
  read: (variables: V, uri: string) => Effect.Effect<ResourceBody, E, R>,
  options?: Completion.Options<keyof V & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.effect(offer("add", template, read, options?.complete))

/** The same in the stead of the template of that text, which is back when the scope closes. Fails with `Unknown` without one. */
export const replace = <
  V,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof V & string> = {}
>(
  template: ResourceTemplate<V>,
  read: (variables: V, uri: string) => Effect.Effect<ResourceBody, E, R>,
  options?: Completion.Options<keyof V & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.effect(offer("replace", template, read, options?.complete))

const offer = <V, E extends HandlerError, R, C extends object>(
  how: "add" | "replace",
  template: ResourceTemplate<V>,
  read: (variables: V, uri: string) => Effect.Effect<ResourceBody, E, R>,
  complete: C | undefined
): captured.Register<R | Completion.Services<C>> =>
(catalog, provide) => {
  const { uriTemplate, options, variables } = template
  const compiled = UriTemplate.make(uriTemplate)
  if (Result.isFailure(compiled)) {
    return Effect.fail(
      new DefinitionError({
        reason: "UriTemplate",
        kind: "resource template",
        definition: uriTemplate,
        message: `The resource template ${JSON.stringify(uriTemplate)} cannot be offered: ${compiled.failure}`
      })
    )
  }
  const decode = variables === undefined
    ? (matched: UriTemplate.Values) => Result.succeed(matched as V)
    : Schema.decodeUnknownResult(variables.schema)
  const { cacheScope: _s, ttlMs: _t, visible, ...said } = options
  return catalog.templates[how](uriTemplate, {
    definition: { uriTemplate, ...omitUndefined(said) },
    visible,
    names: compiled.success.names,
    complete: makeCompleters(variables?.fields ?? {}, { ...complete }, provide),
    match: (uri) => {
      // "Servers MUST validate all resource URIs" (resources, security): what is none is nobody's, and is never written back.
      const matched = isUri(uri) ? UriTemplate.match(compiled.success, uri) : undefined
      const decoded = matched === undefined ? undefined : decode(matched)
      if (decoded === undefined || Result.isFailure(decoded)) return undefined
      return () => readResource(provide(read(decoded.success, uri)), uri, options)
    }
  })
}
