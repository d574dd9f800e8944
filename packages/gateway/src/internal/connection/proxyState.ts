/**
 * The state of a proxy, for the application and for a gateway.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { Revision } from "@skein/protocol/Revision"
import * as Context from "effect/Context"
import type { RemoteStatus } from "./remote.ts"

/** The state of a remote server. */
export interface State extends RemoteStatus {
  /** The name of the remote server in messages, if it is known. */
  readonly label: string | undefined
  /** The name and the version of the remote server, as it sent them. Do not trust them. */
  readonly info: Implementation | undefined
  /** The revision of the protocol that it is reached in. */
  readonly revision: Revision | undefined
  /** The number of its entries that the server offers, by kind. */
  readonly entries: Readonly<Record<"tools" | "resources" | "resourceTemplates" | "prompts", number>>
  /** The number of connections of single callers, beside the one that lists. */
  readonly connections: number
  /** The number of calls that wait for the answers of stateless callers. */
  readonly parkedCalls: number
}

/** Reads the state of one proxy. */
export class ProxyState extends Context.Service<ProxyState, () => State>()("@skein/gateway/ProxyState") {}

/** Receives the function that reads the state of each proxy that is built: a gateway knows its own. */
export const ProxyStates = Context.Reference<Set<() => State> | undefined>("@skein/gateway/ProxyStates", {
  defaultValue: () => undefined
})
