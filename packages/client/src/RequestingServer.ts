/**
 * The server that requests input from the host, and the request that it belongs to.
 *
 * "Provide UI that makes it clear which server is requesting information" (elicitation, user interaction model): every
 * input request that a host receives (`Elicitation`, `Sampling`, `Roots`) has a `RequestingServer`.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { Revision } from "@skein/protocol/Revision"

/** The server that requests input from the host. */
export interface RequestingServer {
  /**
   * The name that the host gives the server: the `label` of its client, or its name in a pool. It is the only name here
   * that the server does not choose: distinguish servers by it, and show it to the user.
   */
  readonly label: string | undefined
  /** Name and version of the server, as it sent them; undefined if it sent none. Do not trust them. */
  readonly info: Implementation | undefined
  /** The negotiated revision. */
  readonly revision: Revision
  /**
   * The method of the request that waits for the answer, for instance `tools/call`. Undefined in the session-based
   * revisions, in which a server does not declare which request its input request belongs to.
   */
  readonly method: string | undefined
  /**
   * The id of the request of this client that the input request belongs to, as `RequestOptions.onSend` received it.
   * Only known in a session over HTTP, where the input request arrives on the stream of that request.
   */
  readonly requestId?: number | undefined
}
