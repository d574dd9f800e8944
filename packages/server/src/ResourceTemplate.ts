/**
 * Resource templates: families of resources with an RFC 6570 URI template.
 *
 * `ResourceTemplate.layer` registers a template with the reader of its resources and with the completion of its
 * variables; `ResourceTemplate.add` and `ResourceTemplate.replace` do so while the server runs.
 *
 * @example
 * const note = ResourceTemplate.make("notes://{folder}/{id}", {
 *   name: "note",
 *   mimeType: "text/markdown",
 *   variables: { folder: Schema.Literals(["work", "home"]), id: Schema.NumberFromString }
 * })
 * const live = ResourceTemplate.layer(
 *   note,
 *   ({ folder, id }) => Effect.flatMap(Notes, (notes) => notes.read(folder, id)),
 *   { complete: { id: (typed, { folder }) => Effect.flatMap(Notes, (notes) => notes.idsLike(typed, folder)) } }
 * )
 */
import * as McpError from "@skein/protocol/McpError"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import { DefinitionError, InvalidUriTemplate } from "./DefinitionError.ts"
import type { HandlerContext } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import type { EffectMistake } from "./internal/handlers/handlerMistake.ts"
import { type Register, registerLayer, registerScoped } from "./internal/handlers/captureServices.ts"
import { refuseForeign } from "./internal/handlers/foreignOptions.ts"
import { effectOf } from "./internal/handlers/wrongAnswer.ts"
import { readResource, type ResourceAnswer } from "./internal/handlers/readResource.ts"
import { settle } from "./internal/schema/standardSchema.ts"
import type { TypeOf } from "./internal/schema/inputSchema.ts"
import {
  type AnyFields,
  type Checked,
  type CompiledTexts,
  compileTexts,
  type TextReader,
  textReader
} from "./internal/schema/textFields.ts"
import * as traversal from "./internal/handlers/traversal.ts"
import { makeCompleters } from "./internal/handlers/completers.ts"
import type { Options as ResourceOptions } from "./Resource.ts"
import { isUri } from "./internal/catalog/validateDefinition.ts"
import { omitUndefined } from "./internal/base/json.ts"

/**
 * The schema of the variables. A plain variable is decoded from text, an exploded one (`{x*}`) from a list of texts.
 *
 * - The fields of a struct, or a struct: Effect Schemas that decode text.
 * - A schema of another library, of the whole object, such as `z.object({ … })`. It must have a JSON Schema: see
 *   `StandardSchema`.
 */
export type Variables = AnyFields

/** The variables that a reader receives for a schema. */
export type VariablesOf<V extends Variables> = TypeOf<V>

/**
 * Makes a mistake in the schema of the variables a type error that names it. A schema for a variable that the template
 * does not have is a mistake: the template would never match.
 */
export interface CheckedVariables<T extends string, V extends Variables> {
  readonly variables?:
    | Checked<V, "variables", keyof Matched<T>, string | ReadonlyArray<string> | undefined>
    | undefined
  // An option that has another place.
  readonly complete?: "Pass { complete } after the reader"
}

/**
 * The description of a template. Its caching hints limit how long, and by whom, the contents of its resources may be
 * cached.
 */
export interface Options<V extends Variables> extends Omit<ResourceOptions, "name" | "size"> {
  /** A name for programs. */
  readonly name: string
  /**
   * The schema of the variables, for example `{ id: Schema.NumberFromString }` or `z.object({ id: z.coerce.number() })`.
   * A URI whose variables do not match the schema does not match the template. If the schema validates asynchronously,
   * such a URI matches, and reading it fails as `Resource.notFound`. Without a schema each variable is text, or a list
   * of texts if it is exploded.
   */
  readonly variables?: V | undefined
  /**
   * Whether variables may leave a folder when a reader uses them as a path. False by default: a URI does not match the
   * template if a variable has a `..` segment, starts with `/`, `\` or a drive, or contains NUL, with either separator
   * and also if it is percent-encoded again. The variables of `{?a}`, `{&a}` and `{#a}` are not checked, nor is one at
   * the start of the template, which is a whole URI.
   *
   * Set it for readers that do not use variables as paths, or for `file://{+path}`, whose values start with `/`. The
   * reader must then check them.
   */
  readonly allowTraversal?: boolean | undefined
}

/**
 * The variables of a template with the types of their values. Those of `{a}` and `{+a}` are always present; those of
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

/** The value that a reader returns: text, bytes, several contents, or the whole result. See `Resource.Answer`. */
export type Answer = ResourceAnswer

/** A template's definition. `V` is the type of the variables that its reader receives. */
export interface ResourceTemplate<V> {
  readonly uriTemplate: string
  readonly options: Omit<Options<never>, "variables">
  readonly variables: TextReader<V> | undefined
}

/**
 * Defines a template.
 *
 * @example
 * const page = ResourceTemplate.make("wiki://{title}", { name: "page" })
 */
export const make = <const T extends string, V extends Variables = never>(
  uriTemplate: T,
  options: Options<V> & CheckedVariables<T, V>
): ResourceTemplate<[V] extends [never] ? Matched<T> : VariablesOf<V>> => {
  const { variables, ...rest } = options
  return {
    uriTemplate,
    options: rest,
    variables: variables === undefined ? undefined : textReader<V>(variables) as TextReader<never>
  }
}

/**
 * Registers a template with the reader of its resources and with the completion of its variables. A variable whose
 * schema consists of literals is completed automatically.
 *
 * The reader receives the percent-decoded variables and the whole URI. A variable that would leave a folder does not
 * match (`allowTraversal`). The reader must check symbolic links and the variables of a query itself. A text that is not
 * a URI by RFC 3986 matches no template. A `Resource` with the requested URI comes before all templates, and the
 * templates are tried in the order of their definitions.
 *
 * A failure of the reader becomes `-32603` with its message; an `McpError` (`Resource.notFound`) keeps its code. Fails
 * with `DefinitionError`: `DuplicateName`, `InvalidUriTemplate`, `InvalidSchema`, `InvalidValue`.
 *
 * @example
 * const live = ResourceTemplate.layer(page, ({ title }) => Effect.flatMap(Wiki, (wiki) => wiki.read(title)))
 */
export const layer = <
  V,
  R = never,
  C extends Completion.Sources<keyof V & string> = {},
  A = never
>(
  template: ResourceTemplate<V>,
  read: (
    variables: V,
    uri: string
  ) => Effect.Effect<Answer, HandlerError, R> | (EffectMistake<A, "ResourceTemplate"> & A),
  options?: Completion.Options<keyof V & string, C>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerLayer(register("add", template, read as Reader<V, HandlerError, R>, options?.complete))

/**
 * Registers a template with a reader that returns a value or a promise. Its errors reach the client by the rules of
 * `HandlerContext`; throw `Resource.notFound(uri)` for a resource that does not exist.
 *
 * @example
 * const live = ResourceTemplate.async(page, async ({ title }, uri, { signal }) => {
 *   const text = await wiki.read(title, { signal })
 *   if (text === undefined) throw Resource.notFound(uri)
 *   return text
 * })
 */
const async_ = <V, R = never, C extends Completion.Sources<keyof V & string> = {}>(
  template: ResourceTemplate<V>,
  read: (variables: V, uri: string, context: HandlerContext<R>) => Answer | Promise<Answer>,
  options?: Completion.Options<keyof V & string, C>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R | Completion.Services<C>>> => {
  const run = toEffect<readonly [V, string], Answer, R>(([variables, uri], context) => read(variables, uri, context))
  return layer(template, (variables, uri) => run([variables, uri]), options)
}
export { async_ as async }

/** Registers a template with its reader until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <
  V,
  R = never,
  C extends Completion.Sources<keyof V & string> = {},
  A = never
>(
  template: ResourceTemplate<V>,
  read: (
    variables: V,
    uri: string
  ) => Effect.Effect<Answer, HandlerError, R> | (EffectMistake<A, "ResourceTemplate"> & A),
  options?: Completion.Options<keyof V & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerScoped(register("add", template, read as Reader<V, HandlerError, R>, options?.complete))

/**
 * Replaces the template of the same text until the scope closes. Fails with `DefinitionError` `NotFound` if no template
 * has the text, and otherwise as `layer` does.
 */
export const replace: typeof add = <
  V,
  R,
  C extends Completion.Sources<keyof V & string>
>(
  template: ResourceTemplate<V>,
  read: unknown,
  options?: Completion.Options<keyof V & string, C>
) => registerScoped(register("replace", template, read as Reader<V, HandlerError, R>, options?.complete))

type Reader<V, E, R> = (variables: V, uri: string) => Effect.Effect<Answer, E, R>

const register = <V, E extends HandlerError, R, C extends object>(
  how: "add" | "replace",
  template: ResourceTemplate<V>,
  read: Reader<V, E, R>,
  complete: C | undefined
): Register<R | Completion.Services<C>> =>
(catalog, provide) => {
  const { uriTemplate, options, variables } = template
  const compiled = UriTemplate.make(uriTemplate)
  if (Result.isFailure(compiled)) {
    const reason = new InvalidUriTemplate({
      message: `The resource template ${JSON.stringify(uriTemplate)} is invalid: ${compiled.failure}`
    })
    return Effect.fail(new DefinitionError({ reason, kind: "resource template", definition: uriTemplate }))
  }
  const reader: Effect.Effect<CompiledTexts<V>, DefinitionError> = variables === undefined
    ? Effect.succeed({ fields: [], decode: (matched) => Result.succeed(matched as V) })
    : compileTexts("resource template", uriTemplate, "variables", variables)
  const reading = `The reader of the resource template ${uriTemplate}`
  const { allowTraversal = false, cacheScope: _s, ttlMs: _t, visible, ...listed } = options
  const leaves = allowTraversal ? () => false : traversal.finder(compiled.success)
  return Effect.flatMap(
    Effect.andThen(refuseForeign("resource template", uriTemplate, options), reader),
    ({ decode, fields }) => {
      const run = (decoded: Result.Result<V, string>, uri: string) =>
        Result.isSuccess(decoded)
          ? readResource(provide(effectOf(read(decoded.success, uri), reading, "ResourceTemplate")), uri, options)
          : Effect.fail(McpError.resourceNotFound(uri))
      return catalog.templates[how](uriTemplate, {
        definition: { uriTemplate, ...omitUndefined(listed) },
        visible,
        names: compiled.success.names,
        complete: makeCompleters(fields, { ...complete }, provide),
        match: (uri) => {
          // "Servers MUST validate all resource URIs" (resources, security). An invalid one matches nothing and is never
          // echoed.
          const matched = isUri(uri) ? UriTemplate.match(compiled.success, uri) : undefined
          const decoded = matched === undefined || leaves(matched) ? undefined : decode(matched)
          if (decoded === undefined) return undefined
          if (Result.isResult(decoded)) return Result.isSuccess(decoded) ? () => run(decoded, uri) : undefined
          // A request may only check whether the template matches. Then a rejection has no handler.
          if (Predicate.isPromiseLike(decoded)) decoded.then(undefined, () => {})
          return () => Effect.flatMap(settle(decoded), (decoded) => run(decoded, uri))
        }
      })
    }
  )
}
