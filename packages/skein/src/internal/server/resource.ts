/**
 * Resources and templates of resources: contents that a client can read by URI.
 */
import * as Core from "@skein/server/AsyncDefinition"
import { define, type Definition } from "../base/definition.ts"
import type { Annotations, Icon, Meta, ReadResourceResult, ResourceContents } from "../base/messages.ts"
import type { CompletionOptions, Completions } from "./completion.ts"
import type { HandlerContext } from "./handlerContext.ts"
import type { CachingHint } from "./options.ts"
import type { Visible } from "./request.ts"
import type { AnySchema, CheckedTexts, ReadBy } from "./schema.ts"

/** The description of a resource. Its caching hints limit how long, and by whom, its contents may be cached. */
export interface ResourceOptions extends CachingHint {
  /** A name for programs. The URI by default. */
  readonly name?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /** The size of the contents in bytes, before any encoding. */
  readonly size?: number | undefined
  /** The audience, the priority (0 to 1), and the time of the last change. */
  readonly annotations?: Annotations | undefined
  /** Which callers may see the resource, read it and subscribe to it. All callers by default. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  readonly _meta?: Meta | undefined
}

/**
 * The value that a reader returns: text, bytes (sent as base64), several contents with their own URIs and types
 * (`Content.resourceContents`), or the whole result, with caching hints of its own.
 */
export type ResourceAnswer =
  | string
  | Uint8Array
  | ReadonlyArray<ResourceContents>
  | ReadResourceResult

/**
 * Makes a resource for `use` and `add` of an `AsyncServer`, and for `mount`. The URI must be valid by RFC 3986. It is compared
 * with the requested URI character by character.
 *
 * @example
 * const menu = resource("shop://menu", { mimeType: "text/markdown" }, () => readFile("menu.md", "utf8"))
 */
export const resource = (
  uri: string,
  options: ResourceOptions,
  read: (context: HandlerContext) => ResourceAnswer | Promise<ResourceAnswer>
): Definition => define(Core.resource(uri, options, read as never))

/** The description of a template. Its caching hints limit how long, and by whom, the contents may be cached. */
export interface TemplateOptions<V extends AnySchema = never> extends Omit<ResourceOptions, "name" | "size"> {
  /** A name for programs. */
  readonly name: string
  /**
   * The schema of the variables, for example `z.object({ id: z.coerce.number() })`. A URI whose variables do not match the
   * schema does not match the template. Without a schema each variable is text, or a list of texts if it is exploded
   * (`{x*}`).
   */
  readonly variables?: V | undefined
  /**
   * Whether variables may leave a folder when a reader uses them as a path. False by default: a URI does not match if a
   * variable has a `..` segment, starts with `/`, `\` or a drive, or contains NUL. The variables of `{?a}`, `{&a}` and `{#a}`
   * are not checked. Set it for readers that do not use variables as paths, or that check them.
   */
  readonly allowTraversal?: boolean | undefined
}

/**
 * The variables of a template with the types of their values. Those of `{a}` and `{+a}` are always present; those of `{/a}`,
 * `{?a}`, `{&a}` and `{#a}` may be absent.
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

/** The variables that the reader of a template receives. */
export type TemplateVariables<T extends string, V extends AnySchema> = [V] extends [never] ? Matched<T> : ReadBy<V>

/**
 * Makes a mistake in the schema of the variables a type error that names it. A schema for a variable that the template does
 * not have is a mistake: the template would never match.
 */
export interface CheckedVariables<T extends string, V> {
  readonly variables?:
    | ([V] extends [never] ? unknown
      : CheckedTexts<V, "variables", keyof Matched<T>, string | ReadonlyArray<string> | undefined>)
    | undefined
}

/**
 * Makes a template of resources (RFC 6570) for `use` and `add` of an `AsyncServer`, and for `mount`. The reader receives the
 * percent-decoded variables and the whole URI; throw `resourceNotFound(uri)` for a resource that does not exist. `completion`
 * has the suggestions for variables: lists, or functions that return lists or promises.
 *
 * @example
 * const note = template("notes://{id}", { name: "note" }, ({ id }) => notes.read(id), {
 *   complete: { id: (typed) => notes.search(typed) }
 * })
 */
export const template = <
  const T extends string,
  V extends AnySchema = never,
  C extends Completions<keyof TemplateVariables<T, V> & string> = {}
>(
  uriTemplate: T,
  options: TemplateOptions<V> & CheckedVariables<T, V>,
  read: (
    variables: TemplateVariables<T, V>,
    uri: string,
    context: HandlerContext
  ) => ResourceAnswer | Promise<ResourceAnswer>,
  completion?: CompletionOptions<keyof TemplateVariables<T, V> & string, C>
): Definition => define(Core.template(uriTemplate, options as never, read as never, completion as never))
