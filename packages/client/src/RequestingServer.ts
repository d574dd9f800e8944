/**
 * Who asks the host something, and for what.
 *
 * "Provide UI that makes it clear which server is requesting information" (elicitation, user interaction model): every
 * question that a host is asked (`Elicitation`, `Sampling`, `Roots`) carries this.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { Revision } from "@skein/protocol/Revision"

/** See the module's text. */
export interface RequestingServer {
  /**
   * What the host itself calls the server: the `label` of its client, or its name in a pool. The only name here that a server has no
   * say in: tell servers apart by it, and show it to the user.
   */
  readonly label: string | undefined
  /** Name and version of the server, as it gave them: not to be trusted, and undefined where it gave none. */
  readonly info: Implementation | undefined
  /** The revision that is spoken with the server. */
  readonly revision: Revision
  /**
   * The method of the request that waits for the answer, `tools/call` for instance. In the session era a server does
   * not say for the sake of what it asks, and this is undefined.
   */
  readonly method: string | undefined
}
