/**
 * The relay of one connection to a remote server: it finds the request that the remote server asks, notifies or logs
 * for, and passes it on to the caller of that request.
 *
 * A server of the stateless revision asks in the result of a request. Over HTTP, a message of a session arrives on the
 * stream of its request. Everywhere else (stdio, in memory) a message does not name its request. It is then passed on
 * only if all requests in progress on the connection are those of one caller, and otherwise refused or dropped: it must
 * not reach another user.
 */
import { InputRefused, Unsupported } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import { NotificationListener } from "@skein/client/NotificationListener"
import type { RequestingServer } from "@skein/client/RequestingServer"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import type { InputRequest, InputResponse } from "@skein/protocol/InputRequired"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Forwarding from "@skein/server/Forwarding"
import type { InputError } from "@skein/server/InputError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { CurrentRequest, type ForwardedRequest } from "./forwardedRequest.ts"
import { omitMeta } from "./meta.ts"

/** The capabilities of the input requests that a connection declares to the remote server. */
export type Declared = Pick<Capabilities.ClientCapabilities, "elicitation" | "roots" | "sampling">

/** All capabilities: for a connection that serves every caller. A caller that lacks one refuses the input request. */
export const everything: Declared = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {}
}

/** Returns the capabilities that a caller declares, in the form of the newest revision. */
export const declaredBy = ({ capabilities, revision }: Caller): Declared => {
  const read = Codec.decode(Capabilities.ClientCapabilities, revision, capabilities, "capabilities", [])
  if (Result.isFailure(read)) return {}
  const { elicitation, roots, sampling } = read.success
  return {
    ...(elicitation === undefined ? undefined : { elicitation }),
    ...(sampling === undefined ? undefined : { sampling }),
    ...(roots === undefined ? undefined : { roots: {} })
  }
}

interface Refusal {
  readonly reason: typeof Unsupported | typeof InputRefused
  readonly error: McpError.McpError
  readonly cause: unknown
}

/**
 * The refusal that the remote server receives. A caller without the capability is refused as that caller itself would
 * do it: "`-32601` (Method not found)" without the capability of a method, "`-32602`" for a mode or a member that was
 * not declared.
 */
const toRefusal = (error: InputError, { caller }: ForwardedRequest): Refusal => {
  const { method, reason } = error
  switch (reason._tag) {
    case "ProtocolError":
      return { reason: InputRefused, error: reason.error, cause: error }
    case "MissingCapability": {
      const [capability = ""] = Object.keys(reason.capabilities)
      const lacking = Capabilities.declares(caller.capabilities, capability)
        ? McpError.invalidParams(reason.message)
        : McpError.methodNotFound(method, { reason: `Client does not have ${capability} capability` })
      return { reason: Unsupported, error: lacking, cause: error }
    }
    case "Unsupported": {
      const { revision } = caller
      const isKnown = Method.request(method, revision) !== undefined ||
        Method.inputRequest(method, revision) !== undefined
      const lacking = isKnown ? McpError.invalidParams(reason.message) : McpError.methodNotFound(method)
      return { reason: Unsupported, error: lacking, cause: error }
    }
    case "InvalidRequest":
      return { reason: InputRefused, error: McpError.invalidParams(reason.message), cause: error }
    default: {
      const failed = new McpError.McpError({ reason: "InternalError", message: reason.message })
      return { reason: InputRefused, error: failed, cause: error }
    }
  }
}

const notAttributed: Refusal = {
  reason: InputRefused,
  error: new McpError.McpError({
    reason: "InternalError",
    message:
      "Input requests are refused while several callers have requests in progress on this connection: the transport does not show which of them an input request belongs to"
  }),
  cause: undefined
}

// How many URLs whose visit is not complete yet are remembered for each connection. At the bound the oldest one of the
// client with the most is forgotten, so that a client cannot make the others miss the end of their visits.
const maxVisits = 1_000

interface Visit {
  readonly caller: Caller
  readonly client: string | undefined
}

/** Passes the messages of one connection on. */
export type Relay = ReturnType<typeof makeRelay>

/** `unnamed` runs when the remote server asks without naming the request. It receives the one of the only caller, if there is one. */
export const makeRelay = (
  catalog: Catalog.Catalog["Service"],
  run: (effect: Effect.Effect<void>) => unknown,
  unnamed: (request: ForwardedRequest | undefined) => void = () => {}
) => {
  /** The requests in progress, oldest first. */
  const requests = new Set<ForwardedRequest>()
  /** The request of each id that was sent on the present connection. */
  const sentById = new Map<number, ForwardedRequest>()
  /** The callers that were asked to visit a URL, by the id of the elicitation, oldest first. */
  const visits = new Map<string, Visit>()
  const visitCounts = new KeyedCounter()

  /** Adds a request until the scope closes. */
  const add = (request: ForwardedRequest): Effect.Effect<void, never, Scope.Scope> =>
    Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => requests.add(request)),
      () =>
        Effect.sync(() => {
          requests.delete(request)
          for (const id of request.sentIds) if (sentById.get(id) === request) sentById.delete(id)
        })
    ))

  /** A request was sent with this id. */
  const sent = (id: number, request: ForwardedRequest): void => {
    sentById.set(id, request)
    request.sentIds.push(id)
  }

  const find = (requestId: number | undefined): ForwardedRequest | undefined => {
    const named = requestId === undefined ? undefined : sentById.get(requestId)
    if (named !== undefined) return named
    const [...all] = requests
    const last = all.at(-1)
    return last !== undefined && all.every(({ owner }) => owner === last.owner) ? last : undefined
  }

  /** The services that a client is made with, so that the remote server can ask and notify callers. */
  const services = (declared: Declared): Context.Context<never> => {
    const { elicitation, roots, sampling } = declared
    let services: Context.Context<never> = Context.make(NotificationListener, {
      onNotification
    }) as Context.Context<never>
    if (elicitation !== undefined) {
      const handle = (mode: "form" | "url") =>
        Capabilities.elicits(declared, mode)
          ? (params: (InputRequest & { readonly method: "elicitation/create" })["params"], server: RequestingServer) =>
            Result.succeed(ask({ method: "elicitation/create", params }, server)) as never
          : undefined
      services = Context.add(services, Elicitation.Elicitation, { form: handle("form"), url: handle("url") })
    }
    if (sampling !== undefined) {
      services = Context.add(services, Sampling.Sampling, {
        tools: sampling.tools !== undefined,
        context: sampling.context !== undefined,
        handle: (params, server) => Result.succeed(ask({ method: "sampling/createMessage", params }, server)) as never
      })
    }
    if (roots !== undefined) {
      services = Context.add(services, Roots.Roots, {
        list: (server) =>
          Effect.map(
            ask({ method: "roots/list" }, server),
            (response) => (response as { readonly roots: ReadonlyArray<Roots.Root> }).roots
          ),
        changes: undefined
      })
    }
    return services
  }

  const ask = (question: InputRequest, server: RequestingServer): Effect.Effect<InputResponse, Refusal> =>
    Effect.withFiber((fiber) => {
      const known = fiber.getRef(CurrentRequest) ??
        (server.requestId === undefined ? undefined : sentById.get(server.requestId))
      const request = known ?? find(undefined)
      if (known === undefined) unnamed(request)
      if (request === undefined) {
        return Effect.andThen(
          Effect.logWarning(`${question.method} of the remote server was refused: its caller is not known`),
          Effect.fail(notAttributed)
        )
      }
      const asked = omitMeta(question)
      const id = asked.method === "elicitation/create" && asked.params.mode === "url"
        ? asked.params.elicitationId
        : undefined
      if (id !== undefined) remember(id, request)
      return Effect.mapError(request.ask(asked), (error) => {
        if (error.reason._tag === "MissingCapability") {
          request.lacking = { ...request.lacking, ...error.reason.capabilities }
        }
        return toRefusal(error, request)
      })
    })

  const remember = (id: string, { caller, client }: ForwardedRequest): void => {
    // Only in this revision a client receives the notification that a visit is complete.
    if (caller.revision !== "2025-11-25") return
    forget(id)
    if (visits.size >= maxVisits) {
      const { largest } = visitCounts
      for (const [oldest, visit] of visits) {
        if (largest !== undefined && visit.client !== largest) continue
        forget(oldest)
        break
      }
    }
    visits.set(id, { caller, client })
    visitCounts.add(client, 1)
  }

  const forget = (id: string): Visit | undefined => {
    const visit = visits.get(id)
    if (visit !== undefined && visits.delete(id)) visitCounts.release(visit.client)
    return visit
  }

  const onNotification = ({ method, params = {} }: JsonRpc.Notification, requestId: number | undefined): void => {
    switch (method) {
      case Method.LoggingMessage.name: {
        const request = find(requestId)?.request
        const message = Codec.decodeParams(Method.LoggingMessage, "2025-11-25", params, [])
        if (request === undefined || Result.isFailure(message)) return
        return Forwarding.logMessage(catalog, request, message.success as LoggingMessageNotificationParams)
      }
      case Method.ElicitationComplete.name:
        return visited(params["elicitationId"])
    }
  }

  /** Notifies the caller that was asked to visit a URL that the visit is complete. */
  const visited = (id: unknown): void => {
    const visit = typeof id === "string" ? forget(id) : undefined
    if (visit === undefined) return
    const { caller } = visit
    const notification = { method: Method.ElicitationComplete.name, params: { elicitationId: id as string } }
    const sent = Extension.notify(caller, `elicitation ${id as string}`, notification)
    run(Effect.asVoid(Effect.provideService(sent, Catalog.Catalog, catalog)))
  }

  return { add, sent, services }
}
