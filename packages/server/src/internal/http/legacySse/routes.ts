/**
 * The HTTP+SSE transport of 2024-11-05: a path for streams by GET, and one for messages by POST.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Guards } from "../access/guards.ts"
import type { LegacySse } from "../access/options.ts"
import { type HttpRefusal, idOf, invalid, tooManyStreams } from "../messages/refusals.ts"
import { newId, notFound, type Sessions } from "../sessions/sessions.ts"
import { clientOf } from "../../base/client.ts"
import { SseSession } from "./sseSession.ts"

const noSessionId = invalid(400, "Bad Request: the sessionId parameter is missing")

export class LegacySseRoutes {
  readonly #options: LegacySse
  readonly #sessions: Sessions
  readonly #guards: Guards

  constructor(options: LegacySse, sessions: Sessions, guards: Guards) {
    this.#options = options
    this.#sessions = sessions
    this.#guards = guards
  }

  /** The method of one of the two paths; undefined for any other path. */
  methodOf(path: string): "GET" | "POST" | undefined {
    return path === this.#options.path ? "GET" : path === this.#options.messages ? "POST" : undefined
  }

  /** Why a request is refused before its body is read. */
  refusal(request: HttpRequest): HttpRefusal | undefined {
    return request.method === "GET" ? this.#guards.acceptStream(request) : this.#guards.content(request)
  }

  /** Opens a session with its stream. */
  get(request: HttpRequest, answer: HttpAnswer): void {
    const refused = this.#sessions.full(request)
    if (refused !== undefined) return this.#sessions.endpoint.refuse(answer, refused)
    if (this.#sessions.isStreamsFull(clientOf(request))) return this.#sessions.endpoint.refuse(answer, tooManyStreams)
    const session = new SseSession(this.#sessions, newId(), request, answer)
    this.#sessions.add(session, 0)
    this.#sessions.expire(session)
    session.start(this.#options.messages, request.principal)
  }

  /** Receives a message to a session. */
  post(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const mismatch = this.#sessions.mismatch(message, request, undefined, false)
    if (mismatch !== undefined) return this.#sessions.endpoint.refuse(answer, mismatch, idOf(message))
    const id = new URLSearchParams(request.query).get("sessionId")
    if (id === null || id === "") return this.#sessions.endpoint.refuse(answer, noSessionId)
    const session = this.#sessions.open.get(id)
    if (!(session instanceof SseSession) || session.principalId !== request.principal?.id) {
      return this.#sessions.endpoint.refuse(answer, notFound)
    }
    const overload = this.#sessions.overload(message, request)
    if (overload !== undefined) return this.#sessions.endpoint.refuse(answer, overload, idOf(message))
    session.post(message, request, answer, this.#options.assumeInitialized)
  }
}
