/**
 * The streams of a session that are asked for by GET: the one that the server speaks on by itself, and those that broke off.
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

/** How the stream of a request goes on until `over`. `gone` hears that it was asked for in a session that is gone. */
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

/** Nothing is listened to, since the host wants it so. */
export const noStandaloneStream = new TransportError({
  reason: new MessageRejected({ message: "its own stream is not asked for (standaloneStream: false)" })
})

/** Listens to what the server has to say by itself, if it has a stream for that. */
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
      // A server that never had a stream may answer 404 too.
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
      // The server cannot be reached at all: a new connection may, or says so.
      if (!stream.reached) return Effect.sync(() => channel.end({ _tag: "Lost", cause: error }))
      const message = `What the server says by itself is not listened to: ${error.message}`
      const log = stream.opened ? Effect.logWarning(message) : Effect.logDebug(message)
      return Effect.andThen(log, Effect.sync(() => channel.gap(error)))
    },
    onSuccess: () => Effect.void
  })
}
