/**
 * Composes layers around a handler: middleware, hooks, extensions, and the steps of a call are functions of one type.
 */

/** Handles a request, a call or another input. */
export type Handler<In, Out> = (input: In) => Out

/** Makes a handler of the one inside of it, which it may call with another input, or not at all. */
export type Layer<In, Out> = (next: Handler<In, Out>) => Handler<In, Out>

/**
 * Puts layers around a handler. The first layer is the outermost.
 *
 * @example
 * const handle = compose([logged, cached], fetchPage)
 */
export const compose = <In, Out>(
  layers: ReadonlyArray<Layer<In, Out>>,
  handler: Handler<In, Out>
): Handler<In, Out> => layers.reduceRight((next, layer) => layer(next), handler)
