/**
 * The parts of a server that the program `skein` needs: `skein publish` builds a server without serving it, and `skein run`
 * makes a server of a folder. The program is another copy of this code, or `@skein/cli`. So it asks a server for its parts,
 * by a key that all copies have, and passes none of its own values to it.
 */
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { definitionOf } from "../base/definition.ts"

/** The key of the function that returns the parts. It is a property that no type of the package shows. */
const partsKey = Symbol.for("skein/serverParts")

/** The layer of a server of `@skein/server`. */
type ServerLayer = Layer.Layer<McpServer.McpServer, unknown>

const partsOf = async (layer: ServerLayer) => ({
  layer,
  // Not the whole modules: every server would load all of their functions.
  Effect: {
    catchCause: Effect.catchCause,
    context: Effect.context,
    fail: Effect.fail,
    failCause: Effect.failCause,
    flatMap: Effect.flatMap,
    matchCause: Effect.matchCause,
    never: Effect.never,
    provideService: Effect.provideService,
    runPromise: Effect.runPromise,
    scoped: Effect.scoped,
    tap: Effect.tap,
    try: Effect.try,
    void: Effect.void
  },
  Layer: {
    build: Layer.build,
    catchCause: Layer.catchCause,
    effectContext: Layer.effectContext,
    effectDiscard: Layer.effectDiscard,
    isLayer: Layer.isLayer,
    mergeAll: Layer.mergeAll,
    tap: Layer.tap,
    unwrap: Layer.unwrap
  },
  McpServer,
  ConfigProvider: await import("effect/ConfigProvider"),
  /** The layer of a definition; undefined for other values. */
  layerOf: definitionOf,
  /** The module that runs the process. */
  loadTransport: (http: boolean) => http ? import("@skein/server/NodeHttp") : import("@skein/server/Stdio")
})

/** Lets the program `skein` ask a server for its parts. `layer` returns that of the server. */
export const exposeParts = (server: object, layer: () => ServerLayer): void => {
  Object.defineProperty(server, partsKey, { value: () => partsOf(layer()) })
}
