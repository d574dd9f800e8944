/**
 * Values of this package that contain a layer of Effect. Their types name their purpose, and nothing else of them is
 * public.
 */
import { quote } from "@skein/protocol/Text"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"

declare const kind: unique symbol

/** A value of this package that contains a part of a program: a definition, a store, an engine. */
export interface Opaque<Kind extends string> {
  readonly [kind]: Kind
}

/**
 * A part of a server: a tool, a resource, a prompt, a middleware. Pass it to `use` of an `AsyncServer`.
 *
 * @example
 * const price = tool("price", { input: z.object({ tea: z.string() }) }, ({ tea }) => prices[tea])
 * new AsyncServer({ name: "shop", version: "1.0.0" }).use(price).runStdio()
 */
export interface Definition extends Opaque<"definition"> {}

type AnyLayer = Layer.Layer<never, unknown, unknown>

const layers = /* @__PURE__ */ new WeakMap<object, AnyLayer>()

/** Makes an opaque value of a layer. */
export const opaque = <A extends Opaque<string>>(layer: AnyLayer): A => {
  const value = Object.freeze({}) as A
  layers.set(value, layer)
  return value
}

/** Makes a definition of a layer that registers something in a server. */
export const define = (layer: AnyLayer): Definition => opaque<Definition>(layer)

/**
 * Returns the layer of a definition or another opaque value. Throws a `TypeError` that says what to do for a value of
 * `@skein/*` or Effect, which are another copy of this code, and for anything else.
 */
export const layerOf = (value: Opaque<string>): AnyLayer => {
  const layer = Predicate.isObject(value) ? layers.get(value) : undefined
  if (layer !== undefined) return layer
  throw new TypeError(problemOf(value))
}

const problemOf = (value: unknown): string => {
  if (Layer.isLayer(value)) {
    return "this value was made by Effect or a package @skein/*, which do not work together with the package skein: " +
      "make it with a function of skein, or use AsyncServer of @skein/server/AsyncServer"
  }
  if (Predicate.isPromiseLike(value)) return "a promise is not a definition: await it first"
  if (typeof value === "function") return "a function is not a definition: use tool(name, options, handler)"
  return `expected a definition, such as that of tool(name, options, handler), and got ${
    value === null || typeof value !== "object" ? quote(String(value)) : "an object"
  }`
}
