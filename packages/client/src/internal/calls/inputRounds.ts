/**
 * Repeats calls that the server answers with input requests (2026-07-28) or with a URL to visit (2025-11-25).
 */
import * as Effect from "effect/Effect"
import { ClientError, InputRequired, InvalidResponse, LimitExceeded, Timeout } from "../../ClientError.ts"
import { clientError, serverErrorOf } from "../base/errors.ts"
import { limitOf } from "../connection/clientOptions.ts"
import type { CallContext, CallLayer } from "./context.ts"
import { remainingTime } from "../base/callOptions.ts"
import { onResponse } from "./onResponse.ts"

/** The members that the next round adds to the parameters of the call. */
interface Reply {
  readonly inputResponses?: unknown
  readonly requestState?: string | undefined
}

/** The call with the remaining time of its `maxTimeout` after the previous round; `undefined` if no time remains. */
const nextRound = (call: CallContext, startedAt: number): CallContext | undefined => {
  const { client: { supervisor }, options } = call
  const { maxTimeout } = remainingTime(supervisor.timeouts, options, supervisor.now() - startedAt)
  return maxTimeout > 0 ? { ...call, options: { ...options, maxTimeout }, rounds: call.rounds + 1 } : undefined
}

/**
 * Repeats a call with the input that its response requires, until the response is complete (2026-07-28, multi
 * round-trip requests).
 */
export const provideInput: CallLayer = onResponse((call, { answer, connection, startedAt }, repeat) => {
  if (answer?._tag !== "InputRequired") return undefined
  const { client, method: { name }, options, params, rounds } = call
  if (options.inputRequests === "fail") {
    const message = `The server requires input for ${name}`
    return Effect.fail(
      new ClientError({ reason: new InputRequired({ message, required: answer.result }), method: name })
    )
  }
  const maxRounds = limitOf(client.options, "maxRounds")
  if (rounds >= maxRounds) {
    const message = `${name} was answered with input requests more than ${maxRounds} times (limits.maxRounds). ` +
      "Their texts may differ each time, as with a time or a random number: then the server must give them a key, or keep " +
      "the value in once"
    return Effect.fail(clientError(LimitExceeded, message, name))
  }
  const { inputRequests, requestState } = answer.result
  if (inputRequests === undefined && requestState === undefined) {
    // "Servers MUST include at least one of `inputRequests` or `requestState` in every `InputRequiredResult` response."
    const message = `The server requires input for ${name}, but sent neither inputRequests nor requestState`
    return Effect.fail(clientError(InvalidResponse, message, name))
  }
  const following = nextRound(call, startedAt)
  if (following === undefined) {
    const message = `${name} timed out (maxTimeout) while the server kept requesting input`
    return Effect.fail(clientError(Timeout, message, name))
  }
  return Effect.flatMap(client.answers.handleAll(connection, name, inputRequests ?? {}), (inputResponses) => {
    const reply: Reply = {
      ...(Object.keys(inputResponses).length === 0 ? undefined : { inputResponses }),
      // "If the InputRequiredResult does not contain a requestState field, the client MUST NOT include one in the
      // retry."
      ...(requestState === undefined ? undefined : { requestState })
    }
    const { inputResponses: _, requestState: __, ...first } = params as Reply
    const now = client.supervisor.now()
    return repeat({ ...following, params: { ...first, ...reply }, startedAt: now, sentAt: now })
  })
})

/**
 * Repeats a call that was refused until the user has visited a URL, after the visit: clients "MAY wait for this
 * notification to automatically retry requests that received a URLElicitationRequiredError" (2025-11-25, elicitation).
 */
export const visitUrls: CallLayer = (next) => (call) => {
  const { client: { answers, supervisor }, method, options } = call
  const response = next(call)
  if (!answers.visitsUrls) return response
  return Effect.catch(response, (refused) => {
    const error = serverErrorOf(refused)
    if (error?.reason !== "UrlElicitationRequired" || supervisor.last.revision !== "2025-11-25") {
      return Effect.fail(refused)
    }
    return answers.visitUrls(supervisor.last, method.name, error, options.maxTimeout).pipe(
      Effect.raceFirst(Effect.as(supervisor.ended, false)),
      Effect.flatMap((isComplete) => isComplete ? response : Effect.fail(refused))
    )
  })
}
