/**
 * Checks whether a method may be called: the client is open, the negotiated revision has the method, and the server
 * declared its capability.
 */
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import { ClientError, Closed, Unsupported } from "../../ClientError.ts"
import type { ConnectionSupervisor } from "../connection/supervisor.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { clientError, endOf } from "../base/errors.ts"
import type { CallLayer, ClientContext } from "./context.ts"

type AnyMethod = Pick<Method.AnyRequest, "name" | "from" | "since" | "until" | "capability">

/** The failure of every call after the client was closed; `undefined` before. */
export const closedFor = ({ closed }: ConnectionSupervisor, method: string): ClientError | undefined => {
  if (closed === undefined) return undefined
  const message = `${method} was not sent: ${closed.message}`
  return new ClientError({
    reason: new Closed({ message, end: endOf(closed) }),
    method,
    undelivered: closed.undelivered
  })
}

/** Why a method must not be called on a connection; `undefined` if it may be. */
export const unsupportedOn = (
  { options: { enforceCapabilities = true } }: Pick<ClientContext, "options">,
  { capabilities, revision }: NegotiatedConnection,
  { name, from, since, until, capability }: AnyMethod
): ClientError | undefined => {
  if (from === "server" || !Revision.within(revision, since, until)) {
    return clientError(Unsupported, `A client cannot send ${name} in ${revision}`, name)
  }
  if (!enforceCapabilities || capability === undefined || capability.side === "client") return undefined
  if (Method.has(capabilities, capability, revision)) return undefined
  const message = `The server did not declare ${capability.path.join(".")}, which ${name} needs (enforceCapabilities)`
  return clientError(Unsupported, message, name)
}

/**
 * Refuses a call after the client was closed, and one that the server does not support. Between two connections the
 * next server is not known yet: the call waits for it, and is checked for it before it is sent.
 */
export const checkSupport: CallLayer = (next) => (call) => {
  const { client, connection, method } = call
  const { supervisor } = client
  const refused = closedFor(supervisor, method.name) ??
    (supervisor.isReconnecting ? undefined : unsupportedOn(client, connection, method))
  return refused === undefined ? next(call) : Effect.fail(refused)
}

/**
 * Sends a request in the form of the server's lifecycle, and again if the next server turns out to have another one. The
 * first request was not sent then.
 */
export const inLifecycle = <A>(
  supervisor: ConnectionSupervisor,
  form: (isStateless: boolean) => Effect.Effect<A, ClientError>
): Effect.Effect<A, ClientError> =>
  Effect.suspend(() => {
    const { isStateless } = supervisor.last
    return Effect.catchIf(
      form(isStateless),
      ({ reason }) => reason._tag === "Unsupported" && supervisor.last.isStateless !== isStateless,
      () => form(!isStateless)
    )
  })
