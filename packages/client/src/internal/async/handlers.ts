/**
 * Converts the async handlers of an `AsyncClient` to the services that answer input requests. The modules of the services
 * are loaded when a handler is given.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AsyncHandlers, AsyncUrlAnswer, HandlerContext } from "./options.ts"
import type { UrlAnswer } from "../../Elicitation.ts"
import type { InvalidRoot, Root } from "../../Roots.ts"
import type { SamplingRefused } from "../../Sampling.ts"

/** Runs an async handler. Its signal aborts when the effect is interrupted. A rejection is a defect. */
const attempt = <A>(run: (context: HandlerContext) => A | PromiseLike<A>): Effect.Effect<A> =>
  Effect.promise(async (signal) => run({ signal }))

/** By its tag: a program with the package `skein` and this one has two classes of it. */
const isRefused = (error: unknown): error is SamplingRefused => Predicate.isTagged(error, "SamplingRefused")

const toUrlAnswer = (answer: AsyncUrlAnswer): UrlAnswer => {
  if (answer.action !== "accept" || answer.done === undefined) return { action: answer.action }
  const { done } = answer
  // A rejection ends the wait as well: the call is repeated, and the server decides. The promise may reject before the
  // effect runs.
  const settled = Promise.allSettled([done])
  return { action: "accept", done: Effect.promise(() => settled) }
}

/** The elements of an async iterable. After an error its last element remains. */
const rootsOf = (roots: AsyncIterable<ReadonlyArray<Root>>): Stream.Stream<ReadonlyArray<Root>> =>
  Stream.catchCause(
    Stream.fromAsyncIterable(roots, (error) => error),
    (cause) => Stream.fromEffectDrain(Effect.logWarning("The iterable of roots has failed", cause))
  )

/** Builds the services of the handlers that are given. */
export const build = Effect.fnUntraced(function*(
  { elicit, elicitUrl, roots, sample, sampling }: AsyncHandlers
): Effect.fn.Return<Context.Context<never>, InvalidRoot, Scope.Scope> {
  const layers: Array<Layer.Layer<never, InvalidRoot>> = []
  if (elicit !== undefined || elicitUrl !== undefined) {
    const Elicitation = yield* Effect.promise(() => import("../../Elicitation.ts"))
    layers.push(Elicitation.layer({
      form: elicit && ((request) => attempt((context) => elicit(request, context))),
      url: elicitUrl &&
        ((request) => Effect.map(attempt((context) => elicitUrl(request, context)), toUrlAnswer))
    }))
  }
  if (sample !== undefined) {
    const Sampling = yield* Effect.promise(() => import("../../Sampling.ts"))
    layers.push(
      Sampling.layer((request) =>
        Effect.catchCause(attempt((context) => sample(request, context)), (cause) => {
          const error = Cause.squash(cause)
          return isRefused(error) ? Effect.fail(error) : Effect.failCause(cause)
        }), sampling)
    )
  }
  if (roots !== undefined) {
    const Roots = yield* Effect.promise(() => import("../../Roots.ts"))
    layers.push(
      typeof roots === "function"
        ? Roots.layerEffect((server) => attempt((context) => roots(server, context)))
        : Symbol.asyncIterator in roots
        ? Roots.layerStream(rootsOf(roots))
        : Roots.layer(roots)
    )
  }
  const [first, ...others] = layers
  return first === undefined ? Context.empty() : yield* Layer.build(Layer.mergeAll(first, ...others))
})
