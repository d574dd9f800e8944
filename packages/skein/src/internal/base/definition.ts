/**
 * Values of this package that contain a layer of Effect. Their types name their purpose, and nothing else of them is
 * public.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
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

/**
 * Something that a whole server uses: a store, a logger, a tracer. Pass it to `use` of an `AsyncServer`.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0" }).use(memoryState({ maxEntries: 1_000 }))
 */
export interface Service extends Opaque<"service"> {}

/** A way to reach a server: `AsyncClient.connect` of `skein/client` opens its connections. */
export interface Transport extends Opaque<"transport"> {}

type AnyLayer = Layer.Layer<never, unknown, unknown>

/** By this member the packages `@skein/*` recognize the values, and report that they cannot use them. */
const madeBySkein = Symbol.for("skein")

const layers = /* @__PURE__ */ new WeakMap<object, AnyLayer>()

/** The opaque values whose layers provide services to a server. The others register something in it. */
const services = /* @__PURE__ */ new WeakSet<object>()

/** Makes an opaque value of a layer, with the other members of its type. */
export const opaque = <A extends Opaque<string>>(layer: AnyLayer, members?: Omit<A, typeof kind>): A => {
  const value = Object.freeze({ ...members, [madeBySkein]: true }) as unknown as A
  layers.set(value, layer)
  return value
}

/** Makes a definition of a layer that registers something in a server. */
export const define = (layer: AnyLayer): Definition => opaque<Definition>(layer)

/** Makes a definition whose module is loaded when its server is built: a server loads only what it uses. */
export const defineLazily = <M>(load: () => Promise<M>, make: (module: M) => AnyLayer): Definition =>
  define(lazily(load, make))

/** Makes a layer whose module is loaded when it is built. */
export const lazily = <M, A, E, R>(
  load: () => Promise<M>,
  make: (module: M) => Layer.Layer<A, E, R>
): Layer.Layer<A, E, R> => Layer.unwrap(Effect.map(Effect.promise(load), make))

/** Makes a service of a layer that is provided to a whole server. */
export const serve = (layer: AnyLayer): Service => {
  const value = opaque<Service>(layer)
  services.add(value)
  return value
}

/** Whether a value is a service. */
export const isService = (value: Definition | Service): value is Service => services.has(value)

/**
 * Returns the layer of a definition or another opaque value. Throws a `TypeError` that says what to do for a value of
 * `@skein/*` or Effect, which are another copy of this code, and for anything else.
 */
export const layerOf = (value: Opaque<string>): AnyLayer => {
  const layer = Predicate.isObject(value) ? layers.get(value) : undefined
  if (layer !== undefined) return layer
  throw new TypeError(problemOf(value))
}

/** Returns the layer of a definition; undefined for other values, services included. */
export const definitionOf = (value: unknown): AnyLayer | undefined =>
  Predicate.isObject(value) && !services.has(value) ? layers.get(value) : undefined

const problemOf = (value: unknown): string => {
  if (Layer.isLayer(value)) {
    return "this value was made by Effect or a package @skein/*, which do not work together with the package skein: " +
      "make it with a function of skein, or use the packages @skein/* only"
  }
  if (Predicate.hasProperty(value, "runStdio")) {
    return "an AsyncServer runs itself: use server.runStdio(), server.runHttp() or server.listen()"
  }
  if (Predicate.isPromiseLike(value)) return "a promise is not a definition: await it first"
  if (typeof value === "function") return "a function is not a definition: use tool(name, options, handler)"
  return `expected a definition, such as that of tool(name, options, handler), and got ${
    value === null || typeof value !== "object" ? quote(String(value)) : "an object"
  }`
}
