/**
 * The streams of a session that are requested by GET: the standalone SSE stream, and the streams of requests that broke
 * off.
 */
import { MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import { connectionLost, isTransientStatus } from "../base/errors.ts"
import type { HttpChannel } from "./protocol.ts"
import { is2xx, mediaType, readRefusal } from "./refusal.ts"
import type { Session } from "./session.ts"
import type { EventStream, Outcome } from "./eventStream.ts"
import type { HttpResponse } from "./httpClient.ts"

/** A stream of a session, and what to do about the responses to its requests. */
export interface SessionStream {
  readonly channel: HttpChannel
  readonly session: Session
  readonly stream: EventStream
  /** Whether no further message is expected. */
  readonly isOver: () => boolean
  /** Runs when the stream is open again, and messages in between were lost. */
  readonly onReopened?: (() => void) | undefined
  /** Runs if the session no longer exists. */
  readonly onNotFound: () => void
  /** Returns the failure of a stream that is not requested again, given the refusal: by default the refusal. */
  readonly failureOf?: ((refusal: TransportError) => TransportError) | undefined
}

/**
 * Handles a response that is not a stream. A server without the stream may respond 404 as it does without the session,
 * so that counts only after the stream was open.
 */
const onRefusal = (
  { channel, failureOf, onNotFound, session, stream }: SessionStream,
  reply: HttpResponse
): Effect.Effect<Outcome> => {
  const { status } = reply
  if (stream.opened && session.isNotFound(status)) return Effect.as(Effect.sync(onNotFound), undefined)
  return Effect.map(readRefusal(reply, channel), (error) => {
    if (stream.opened && session.isUnknownSession(status, error.message)) return void onNotFound()
    if (!isTransientStatus(status)) stream.failure = failureOf === undefined ? error : failureOf(error)
    return error
  })
}

/** Requests the stream once and reads it. */
const readOnce = (following: SessionStream): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    const { channel, onReopened, session, stream } = following
    stream.reached = false
    const { lastId, opened } = stream
    return Effect.catch(
      channel.exchanger.exchange(session.getRequest(lastId), (reply): Effect.Effect<Outcome> => {
        stream.reached = true
        if (!is2xx(reply) || mediaType(reply) !== "text/event-stream") return onRefusal(following, reply)
        if (opened && lastId === undefined) onReopened?.()
        return stream.readTimed(reply)
      }),
      (error) => {
        // A rejection by the transport itself, for example of a redirect to another origin, is permanent.
        if (error.reason._tag === "MessageRejected") stream.failure = error
        return Effect.succeed<Outcome>(error)
      }
    )
  })

/** Requests a stream that ended or broke until it is over. Fails when it cannot be resumed. */
const follow = (following: SessionStream, outcome: Outcome): Effect.Effect<void, TransportError> =>
  following.isOver() ? Effect.void : Effect.flatMap(
    Effect.andThen(following.stream.pause(outcome), readOnce(following)),
    (next) => follow(following, next)
  )

/** Resumes the stream of a request that broke off until it is over. */
export const resumeRequestStream = (
  following: Omit<SessionStream, "failureOf" | "onReopened">,
  outcome: Outcome
): Effect.Effect<void, TransportError> =>
  follow({
    ...following,
    failureOf: (error) =>
      // A sign-in failed: the caller gets its failure. The request itself was delivered.
      error.reason._tag === "MessageRejected" && error.cause !== undefined
        ? new TransportError({ reason: error.reason })
        : connectionLost(`The stream could not be resumed: ${error.message}`, error, error.status)
  }, outcome)

/** The error of `changes` with the option `standaloneStream: false`. */
export const noStandaloneStream = new TransportError({
  reason: new MessageRejected({ message: "the standalone SSE stream is turned off (standaloneStream: false)" })
})

/** Reads the standalone SSE stream until the session ends, if the server has one. */
export const readStandaloneStream = (
  channel: HttpChannel,
  session: Session,
  stream: EventStream,
  onNotFound: () => void
): Effect.Effect<void> => {
  const isOver = () => session.gone
  const following = { channel, session, stream, isOver, onReopened: () => channel.gap(), onNotFound }
  return Effect.matchEffect(Effect.flatMap(readOnce(following), (outcome) => follow(following, outcome)), {
    onFailure: (error) => {
      // The server cannot be reached at all. The client reconnects, or reports that.
      if (!stream.reached) return Effect.sync(() => channel.end({ _tag: "Lost", cause: error }))
      const message = `standalone SSE stream is closed; server notifications will be missed: ${error.message}`
      const log = stream.opened ? Effect.logWarning(message) : Effect.logDebug(message)
      return Effect.andThen(log, Effect.sync(() => channel.gap(error)))
    },
    onSuccess: () => Effect.void
  })
}
