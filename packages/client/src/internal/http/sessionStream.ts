/**
 * The streams of a session that are asked for by GET: the one that the server speaks on by itself, and those that broke off.
 */
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { Road } from "./protocol.ts"
import { errorText, mayPass, refusal } from "./refusal.ts"
import type { Session } from "./session.ts"
import { ask, type EventStream, Final, follow, type Following } from "./eventStream.ts"
import type { WireReply } from "./httpClient.ts"

const refusalOf = (road: Road, reply: WireReply): Effect.Effect<TransportError> =>
  Effect.flatMap(errorText(reply, road), (text) => refusal(reply, text))

/** How the stream of a request goes on until `over`. `gone` hears that it was asked for in a session that is gone. */
export const resuming = (
  road: Road,
  session: Session,
  stream: EventStream,
  over: () => boolean,
  gone: () => void
): Following => ({
  road,
  stream,
  request: (lastId) => session.get(lastId),
  over,
  judge: (reply) => {
    const { status } = reply
    if (session.isForgotten(status)) return Effect.as(Effect.sync(gone), undefined)
    return Effect.map(refusalOf(road, reply), (error) => {
      if (session.isUnknown(status, error.message)) return void gone()
      if (mayPass(status)) return error
      const message = `The stream could not be resumed: ${error.message}`
      return new Final(new TransportError({ reason: new ConnectionLost({ message, status, cause: error }) }))
    })
  }
})

/** Nothing is listened to, since the host wants it so. */
export const unheard = new TransportError({
  reason: new MessageRejected({ message: "its own stream is not asked for (standaloneStream: false)" })
})

/** Listens to what the server has to say by itself, if it has a stream for that. */
export const listen = (road: Road, session: Session, stream: EventStream): Effect.Effect<void> => {
  const following: Following = {
    road,
    stream,
    request: (lastId) => session.get(lastId),
    reopened: () => road.missed(),
    over: () => session.gone,
    judge: (reply) => {
      // A server that never had a stream may answer 404 too.
      if (stream.opened && session.isForgotten(reply.status)) {
        return Effect.as(Effect.sync(() => session.forgotten()), undefined)
      }
      return Effect.map(refusalOf(road, reply), (error) => {
        if (stream.opened && session.isUnknown(reply.status, error.message)) return void session.forgotten()
        return mayPass(reply.status) ? error : new Final(error)
      })
    }
  }
  return Effect.matchEffect(Effect.flatMap(ask(following), (outcome) => follow(following, outcome)), {
    onFailure: (error) => {
      // The server cannot be reached at all: a new connection may, or says so.
      if (!stream.reached) return Effect.sync(() => road.end({ _tag: "Lost", cause: error }))
      const message = `What the server says by itself is not listened to: ${error.message}`
      const log = stream.opened ? Effect.logWarning(message) : Effect.logDebug(message)
      return Effect.andThen(log, Effect.sync(() => road.missed(error)))
    },
    onSuccess: () => Effect.void
  })
}
