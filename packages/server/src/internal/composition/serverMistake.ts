/**
 * Types that make a mistake in the definitions of a server, or in a layer that is to run, a type error whose first line
 * says what to do. A mistake is `never`, or a text that the compiler shows as a part of the expected type.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { Catalog, UnscopedHandler } from "../../Catalog.ts"

/** The options of a server that are only a name, or lack one. */
export const optionsMistake = "a server needs a name and a version: pass { name, version } as its options"

/** Whether the options of a server have what it needs. Untyped programs pass a name alone, or nothing. */
export const areOptions = (options: unknown): options is { readonly name: string; readonly version: string } =>
  isObject(options) && typeof options["name"] === "string" && typeof options["version"] === "string"

const asyncServerMistake = "an AsyncServer runs itself: use server.runStdio(), server.runHttp() or server.toLayer()"

/** A member of the opaque values of the package `skein`, which has its own copy of Effect and of this code. */
const madeBySkein = Symbol.for("skein")

/** Whether the package `skein` made a value: its `AsyncServer` has no `toLayer`. */
const isOfSkein = (value: object): boolean =>
  Object.hasOwn(value, madeBySkein) || ("runStdio" in value && !("toLayer" in value))

/**
 * Describes the mistake in a value that is not a layer, as the types do. `undefined` for a layer. Untyped programs, and
 * values of the type `any`, pass the types.
 */
export const problemOfLayer = (value: unknown): string | undefined => {
  if (Layer.isLayer(value)) return undefined
  if (Predicate.isPromiseLike(value)) return "a promise is not a layer: await it first"
  if (typeof value === "function") return "a function is not a layer: call it"
  if (!isObject(value)) return `expected a layer, and got ${value === null ? "null" : typeof value}`
  if (isOfSkein(value)) {
    return "this value was made by the package skein, which does not work together with Effect and the packages @skein/*: " +
      "use AsyncServer of skein, or make it with a module of @skein/*"
  }
  if (typeof value["runStdio"] === "function") return asyncServerMistake
  const kind = "uriTemplate" in value
    ? "ResourceTemplate"
    : "uri" in value
    ? "Resource"
    : "arguments" in value
    ? "Prompt"
    : "output" in value
    ? "Tool"
    : undefined
  if (kind === undefined || !isObject(value["options"])) {
    return "expected a layer, such as that of Tool.layer(definition, handler)"
  }
  const name = quote(String(value["name"] ?? value["uri"] ?? value["uriTemplate"]))
  return `the definition ${name} needs its handler: use ${kind}.layer(definition, handler) or ${kind}.async(definition, handler)`
}

/** The mistake in a definition that may need the services `R`. */
export type DefinitionMistake<D, R = unknown> = D extends Layer.Layer<never, unknown, infer Needed>
  ? Missing<Exclude<Needed, R>>
  : NoLayer<D>

type NoLayer<D> = D extends { readonly name: string; readonly options: object; readonly arguments: object }
  ? "A definition needs its handler: use Prompt.layer(definition, handler) or Prompt.async(definition, handler)"
  : D extends { readonly name: string; readonly options: object; readonly output: unknown }
    ? "A definition needs its handler: use Tool.layer(definition, handler) or Tool.async(definition, handler)"
  : D extends { readonly uriTemplate: string }
    ? "A definition needs its reader: use ResourceTemplate.layer(definition, read) or ResourceTemplate.async(definition, read)"
  : D extends { readonly uri: string; readonly options: object }
    ? "A definition needs its reader: use Resource.layer(definition, read) or Resource.async(definition, read)"
  : D extends { readonly runStdio: unknown } ? Capitalize<typeof asyncServerMistake>
  : D extends PromiseLike<unknown> ? "A promise is not a layer: await it first"
  : D extends (...args: never) => unknown ? "A function is not a layer: call it"
  : "Expected a layer, such as that of Tool.layer(definition, handler)"

/** The mistake in the layer of a server that is to run, and so needs every service. */
export type ServerMistake<S, Server> = S extends Layer.Layer<never, unknown, infer R>
  ? Catalog extends R ? "These are definitions without a server: pass them to McpServer.layer({ name, version }, …)"
  :
    | Missing<R>
    | (S extends Layer.Layer<Server, unknown, unknown> ? never
      : "The layer has no server: use McpServer.layer({ name, version }, …)")
  : NoLayer<S>

type Missing<R> = R extends UnscopedHandler ? "A handler acquires a resource: wrap its effect in Effect.scoped"
  : R extends { readonly key: infer Key extends string }
    ? `The service ${Key} is missing: provide its layer with Layer.provide`
  : R extends never ? never
  : "A service is missing: provide its layer with Layer.provide"
