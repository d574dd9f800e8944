/**
 * The bounds of a console that have no option, because no deployment has a reason to change them. Tests lower them.
 */
import * as Context from "effect/Context"

/** The fixed bounds of consoles. */
export interface Fixed {
  /** Children of one row that a source with a store returns at once. Viewers ask for further ones. */
  readonly maxChildren: number
  /** Characters of the arguments of a request, with `showPayloads`. The rest is cut off. */
  readonly maxPayloadChars: number
  /** Rows in one message to a viewer. A larger change is sent as several messages. */
  readonly maxRowsPerMessage: number
  /** How long a source may take to answer, in milliseconds. Then a row reports that it did not. */
  readonly readTimeout: number
  /** Connections of a console on a port of its own. */
  readonly maxConnections: number
}

const maxChildren = 200
const maxPayloadChars = 2_048
const maxRowsPerMessage = 1_000
const readTimeout = 5_000
const maxConnections = 100

/**
 * The fixed bounds. A test provides lower ones.
 *
 * @example
 * Layer.provide(console, Layer.succeed(FixedBounds, { ...defaults, maxChildren: 5 }))
 */
export const FixedBounds: Context.Reference<Fixed> = /* @__PURE__ */ Context.Reference("@skein/console/FixedBounds", {
  defaultValue: (): Fixed => ({ maxChildren, maxPayloadChars, maxRowsPerMessage, readTimeout, maxConnections })
})
