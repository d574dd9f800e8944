/**
 * The streams of a session that are requested by GET: the standalone SSE stream, and the streams of requests that broke
 * off.
 */
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { HttpChannel } from "./protocol.ts"
import { errorText, mayPass, refusal } from "./refusal.ts"
import type { Session } from "./session.ts"
import { type EventStream, follow, PermanentFailure, readOnce, type StreamRequest } from "./eventStream.ts"
import type { HttpResponse } from "./httpClient.ts"

const refusalOf = (channel: HttpChannel, reply: HttpResponse): Effect.Effect<TransportError> =>
  Effect.flatMap(errorText(reply, channel), (text) => refusal(reply, text))

/** The request that resumes the stream of a request until `over`. `gone` runs if the session no longer exists. */
export const resumedRequestStream = (
  channel: HttpChannel,
  session: Session,
  stream: EventStream,
  over: () => boolean,
  gone: () => void
): StreamRequest => ({
  channel: channel,
  stream,
  request: (lastId) => session.getRequest(lastId),
  isOver: over,
  onResponse: (reply) => {
    const { status } = reply
    if (session.isNotFound(status)) return Effect.as(Effect.sync(gone), undefined)
    return Effect.map(refusalOf(channel, reply), (error) => {
      if (session.isUnknownSession(status, error.message)) return void gone()
      if (mayPass(status)) return error
      const message = `The stream could not be resumed: ${error.message}`
      return new PermanentFailure(new TransportError({ reason: new ConnectionLost({ message, status, cause: error }) }))
    })
  }
})

/** The error of `changes` with the option `standaloneStream: false`. */
export const noStandaloneStream = new TransportError({
  reason: new MessageRejected({ message: "the standalone SSE stream is turned off (standaloneStream: false)" })
})

/** Reads the standalone SSE stream until the session ends, if the server has one. */
export const readStandaloneStream = (
  channel: HttpChannel,
  session: Session,
  stream: EventStream
): Effect.Effect<void> => {
  const following: StreamRequest = {
    channel: channel,
    stream,
    request: (lastId) => session.getRequest(lastId),
    onReopened: () => channel.gap(),
    isOver: () => session.gone,
    onResponse: (reply) => {
      // A server without the stream may respond 404 as well, so this counts only after the stream was open.
      if (stream.opened && session.isNotFound(reply.status)) {
        return Effect.as(Effect.sync(() => session.onNotFound()), undefined)
      }
      return Effect.map(refusalOf(channel, reply), (error) => {
        if (stream.opened && session.isUnknownSession(reply.status, error.message)) return void session.onNotFound()
        return mayPass(reply.status) ? error : new PermanentFailure(error)
      })
    }
  }
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
