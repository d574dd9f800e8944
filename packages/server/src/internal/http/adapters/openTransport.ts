/**
 * The transport between the nodes of a fleet, for a server that has a fleet and the option `nodeRequests`.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Fleet, type NodeRequests } from "../../../Fleet.ts"
import { checkKeys } from "../../../RequestState.ts"
import { type ReadyOptions, resolve } from "../access/options.ts"
import type { Opened } from "./nodeTransport.ts"

const unprotected = "nodeRequests needs keys or tlsFolder"

/** Opens the transport between the nodes of a fleet, which other servers do not load. */
export const openTransport = (
  services: Context.Context<never>,
  requests: NodeRequests | undefined,
  options: ReadyOptions
): Effect.Effect<Opened | undefined, TransportError> => {
  const fleet = Context.getOrUndefined(services, Fleet)
  if (requests === undefined || fleet === undefined) return Effect.undefined
  if (requests.keys === undefined && requests.tlsFolder === undefined) {
    return Effect.fail(new TransportError({ reason: new OpenFailed({ message: unprotected }) }))
  }
  const { keepAliveInterval, stateless, streamAfter } = resolve(options)
  if (stateless) return Effect.undefined
  // An answer that is not complete becomes a stream, which gets comments.
  const silence = keepAliveInterval > 0 && streamAfter > 0 ? 3 * Math.max(keepAliveInterval, streamAfter) : undefined
  return Effect.flatMap(
    Effect.andThen(
      Effect.orDie(checkKeys(requests.keys)),
      Effect.promise(() => import("./nodeTransport.ts"))
    ),
    ({ open }) => open({ fleet, requests, services, silence })
  )
}
