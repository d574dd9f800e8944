/**
 * The bounds of consoles. They have no options, because no deployment has a reason to change them. Tests lower them.
 */
import * as Context from "effect/Context"

const defaults = {
  /** Between two reads of the sources while viewers are connected, in milliseconds. */
  interval: 1_000,
  /** Pages and `skein top` that are connected at the same time. */
  maxViewers: 10,
  /** Rows of the tree. The server and each source get an equal part. */
  maxRows: 50_000,
  /** Children of one row that a source with a store returns at once. Viewers ask for further ones. */
  maxChildren: 200,
  /** Characters of the arguments of a request, with `showPayloads`. The rest is cut off. */
  maxPayloadChars: 2_048,
  /** Rows in one message to a viewer. A larger change is sent as several messages. */
  maxRowsPerMessage: 1_000,
  /** How long a source may take to answer, in milliseconds. Then a row reports that it did not. */
  readTimeout: 5_000,
  /** Connections of a console on a port of its own. */
  maxConnections: 100
}

/** The bounds of consoles. */
export type Fixed = Readonly<typeof defaults>

/**
 * The bounds of consoles. A test provides lower ones.
 *
 * @example
 * Layer.provide(console, Layer.succeed(FixedBounds, { ...defaults, maxChildren: 5 }))
 */
export const FixedBounds: Context.Reference<Fixed> = /* @__PURE__ */ Context.Reference("@skein/console/FixedBounds", {
  defaultValue: (): Fixed => defaults
})
