/**
 * Finds the revisions of the protocol that a server supports.
 */
import type * as Client from "@skein/client/Client"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type { Server } from "./config.ts"
import { connect, requestTime, type ServerInvocation } from "./connection.ts"
import { quoteName } from "../base/format.ts"

/** How long the further connections may take, all at the same time, in milliseconds. */
const maxProbeTime = 5_000

// How many versions a server may name in `server/discover`.
const maxVersions = 16

/** Whether a connection with one revision only succeeds. Undefined: the server did not answer in time. */
const supports = (server: Server, revision: Revision.Revision, invocation: ServerInvocation) =>
  Effect.scoped(connect(server, { ...invocation, revision })).pipe(
    Effect.as(true),
    Effect.catch(({ reason }) => Effect.succeed(reason._tag === "NegotiationFailed" ? false : undefined)),
    Effect.timeoutOrElse({
      duration: Math.min(maxProbeTime, invocation.timeout ?? maxProbeTime),
      orElse: () => Effect.succeed(undefined)
    })
  )

/**
 * The revisions of a server, and those of which it is unknown. A server of 2026-07-28 lists them in `server/discover`.
 * For another one with a URL, each revision of sessions is tried with a connection of its own, since `initialize` has the
 * answer to one revision only. A server on stdio is not started again: starting it several times at once can do harm.
 */
export const supportedRevisions = (
  client: Client.Client,
  server: Server,
  invocation: ServerInvocation
): Effect.Effect<{ readonly supported: ReadonlyArray<string>; readonly unknown: ReadonlyArray<string> }> =>
  Effect.gen(function*() {
    const { era, revision } = client
    if (era === "stateless") {
      const listed = yield* Effect.result(client.request(Method.Discover, {}, requestTime(invocation)))
      const versions = listed._tag === "Success" ? listed.success.supportedVersions : [revision]
      return { supported: versions.slice(0, maxVersions).map(quoteName).toSorted(), unknown: [] }
    }
    if (invocation.target._tag !== "Url") return { supported: [revision], unknown: [] }
    // Without --revision the client has tried 2026-07-28 before it opened a session.
    const candidates = invocation.revision === undefined ? Revision.sessionBased : Revision.all
    const tried = yield* Effect.forEach(
      candidates,
      (each) =>
        Effect.map(
          each === revision ? Effect.succeed(true) : supports(server, each, invocation),
          (isSupported) => ({ revision: each, isSupported })
        ),
      { concurrency: "unbounded" }
    )
    const those = (is: boolean | undefined) =>
      tried.flatMap(({ isSupported, revision }) => isSupported === is ? [revision] : [])
    return { supported: those(true), unknown: those(undefined) }
  })
