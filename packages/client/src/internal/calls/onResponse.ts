/**
 * Layers that handle the response to a call, and do nothing before it.
 *
 * Nearly every call passes all of them with nothing to do. Adjacent layers therefore run as steps of one `flatMap`: a
 * separate effect for each of them cost 6 % of a call over an in-memory transport.
 */
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { CallContext, CallHandler, CallLayer, CallResponse } from "./context.ts"

/**
 * Handles a response. Returns `undefined` if the response can be passed on at once. `repeat` makes the call again,
 * through this layer and those inside of it.
 */
type Step = (
  call: CallContext,
  response: CallResponse,
  repeat: CallHandler
) => Effect.Effect<CallResponse, ClientError> | undefined

interface Steps {
  readonly inner: CallHandler
  readonly steps: ReadonlyArray<(call: CallContext, response: CallResponse) => ReturnType<Step>>
}

/** The handlers that consist of steps. */
const stepsOf = new WeakMap<CallHandler, Steps>()

const run = (
  steps: Steps["steps"],
  call: CallContext,
  response: CallResponse,
  from: number
): Effect.Effect<CallResponse, ClientError> => {
  for (let at = from; at < steps.length; at++) {
    const handled = steps[at]!(call, response)
    if (handled === undefined) continue
    return at + 1 === steps.length ? handled : Effect.flatMap(handled, (next) => run(steps, call, next, at + 1))
  }
  return Effect.succeed(response)
}

/** A layer that handles the response. */
export const onResponse = (step: Step): CallLayer => (next) => {
  const { inner, steps } = stepsOf.get(next) ?? { inner: next, steps: [] }
  const handler: CallHandler = (call) => Effect.flatMap(inner(call), (response) => run(all, call, response, 0))
  const all: Steps["steps"] = [...steps, (call, response) => step(call, response, handler)]
  stepsOf.set(handler, { inner, steps: all })
  return handler
}
