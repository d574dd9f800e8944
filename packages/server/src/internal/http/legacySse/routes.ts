/**
 * The HTTP+SSE transport of 2024-11-05: a path for streams by GET, and one for messages by POST.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Guards } from "../access/guards.ts"
import type { LegacySse } from "../access/options.ts"
import { type HttpRefusal, idOf, invalid, tooManyStreams } from "../messages/refusals.ts"
import { notFound } from "../sessions/sessionLookups.ts"
import type { Sessions } from "../sessions/sessions.ts"
import { clientOf } from "../../base/client.ts"
import { SseSession } from "./sseSession.ts"

const noSessionId = invalid(400, "Bad Request: the sessionId parameter is missing")

export const makeLegacySseRoutes = (options: LegacySse, sessions: Sessions, guards: Guards) => {
  const { refuse } = sessions.endpoint
  /** The method of one of the two paths; undefined for any other path. */
  const methodOf = (path: string): "GET" | "POST" | undefined =>
    path === options.path ? "GET" : path === options.messages ? "POST" : undefined

  /** Why a request is refused before its body is read. */
  const refusal = (request: HttpRequest): HttpRefusal | undefined =>
    request.method === "GET" ? guards.acceptStream(request) : guards.content(request)

  /** Opens a session with its stream. */
  const get = (request: HttpRequest, answer: HttpAnswer): void => {
    const refused = sessions.full(request)
    if (refused !== undefined) return refuse(answer, refused)
    if (sessions.isStreamsFull(clientOf(request))) return refuse(answer, tooManyStreams)
    const session = new SseSession(sessions, sessions.newOwnId(), request, answer)
    sessions.add(session, 0)
    sessions.expire(session)
    session.start(options.messages, request.principal)
  }

  /** Receives a message to a session. */
  const post = (message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer, text: string): void => {
    const mismatch = sessions.mismatch(message, request, undefined, false)
    if (mismatch !== undefined) return refuse(answer, mismatch, idOf(message))
    const id = new URLSearchParams(request.query).get("sessionId")
    if (id === null || id === "") return refuse(answer, noSessionId)
    const overload = sessions.overload(message, request)
    const node = sessions.nodes?.nodeOf(id, request)
    if (node !== undefined) {
      if (overload !== undefined) return refuse(answer, overload, idOf(message))
      const gone = (): void => refuse(answer, notFound)
      return sessions.nodes!.passToSession(node, { request, answer, body: { message, text } }, gone)
    }
    const session = sessions.open.get(id)
    if (!(session instanceof SseSession) || session.principalId !== request.principal?.id) {
      return refuse(answer, notFound)
    }
    if (overload !== undefined) return refuse(answer, overload, idOf(message))
    session.post(message, request, answer, options.assumeInitialized)
  }

  return { methodOf, refusal, get, post }
}
