/**
 * The streams of a session that are requested by GET: the standalone SSE stream, and the streams of requests that broke
 * off.
 */
import { MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import { connectionLost, isTransientStatus } from "../base/errors.ts"
import type { HttpChannel } from "./protocol.ts"
import { readRefusal } from "./refusal.ts"
import type { Session } from "./session.ts"
import { type EventStream, follow, readOnce, type StreamRequest } from "./eventStream.ts"

/**
 * The request that opens or resumes a stream of a session. `onNotFound` runs if the session no longer exists. A server
 * without the stream may respond 404 as well, so that counts only after the stream was open.
 */
const streamRequest = (
  session: Session,
  { channel, isOver, onReopened, stream }: Pick<StreamRequest, "channel" | "stream" | "isOver" | "onReopened">,
  onNotFound: () => void,
  permanent: (error: TransportError) => TransportError
): StreamRequest => ({
  channel,
  isOver,
  onReopened,
  stream,
  request: (lastId) => session.getRequest(lastId),
  onResponse: (reply) => {
    const { status } = reply
    if (stream.opened && session.isNotFound(status)) return Effect.as(Effect.sync(onNotFound), undefined)
    return Effect.map(readRefusal(reply, channel), (error) => {
      if (stream.opened && session.isUnknownSession(status, error.message)) return void onNotFound()
      if (!isTransientStatus(status)) stream.failure = permanent(error)
      return error
    })
  }
})

/** Resumes the stream of a request that broke off until it is over. */
export const resumeRequestStream = (
  session: Session,
  outcome: TransportError | undefined,
  following: Pick<StreamRequest, "channel" | "stream" | "isOver">,
  onNotFound: () => void
): Effect.Effect<void, TransportError> => {
  const permanent = (error: TransportError) =>
    // A sign-in failed: the caller gets its failure. The request itself was delivered.
    error.reason._tag === "MessageRejected" && error.cause !== undefined
      ? new TransportError({ reason: error.reason })
      : connectionLost(`The stream could not be resumed: ${error.message}`, error, error.status)
  return follow(streamRequest(session, following, onNotFound, permanent), outcome)
}

/** The error of `changes` with the option `standaloneStream: false`. */
export const noStandaloneStream = new TransportError({
  reason: new MessageRejected({ message: "the standalone SSE stream is turned off (standaloneStream: false)" })
})

const asItIs = (error: TransportError): TransportError => error

/** Reads the standalone SSE stream until the session ends, if the server has one. */
export const readStandaloneStream = (
  channel: HttpChannel,
  session: Session,
  stream: EventStream,
  onNotFound: () => void
): Effect.Effect<void> => {
  const isOver = () => session.gone
  const onReopened = () => channel.gap()
  const following = streamRequest(session, { channel, stream, isOver, onReopened }, onNotFound, asItIs)
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
