/**
 * What a client lets through to its peer. A peer answers what it does not understand, as a server has to; a client must not.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"

/** What the guard has to know, and whom it tells. */
export interface Watch {
  /** What was negotiated, once it was; before that what will be, where there is no choice of era. */
  readonly revision: Revision.Revision | undefined
  /** Something was dropped. Called once for each kind of thing. */
  readonly dropped: (what: string) => void
}

/** A line of prose on stdout, say; an answer that is broken is no noise, for somebody waits for it. */
const isNoise = (message: JsonRpc.Message | JsonRpc.Invalid): boolean => message._tag === "Invalid" && !message.answer

/**
 * Guards a connection.
 *
 * - What is no message at all is dropped. Answering it would mean nothing to a server that writes prose to its stdout.
 * - In the request era requests of the server are dropped: it "MUST NOT write JSON-RPC requests", and the client "MUST NOT write
 *   JSON-RPC responses" (2026-07-28, stdio).
 * - A batch where the revision has none is taken apart.
 */
export const guard = (connection: Connection, watch: Watch): Connection => {
  const told = new Set<string>()
  const drop = (what: string) => {
    if (told.has(what)) return
    told.add(what)
    watch.dropped(what)
  }
  const guarded = (receiver: Receiver): Receiver => {
    const message = (inbound: JsonRpc.Inbound): void => {
      if (inbound._tag === "Batch") {
        if (watch.revision !== "2025-03-26") return inbound.members.forEach(message)
        const members = inbound.members.filter((member) => !isNoise(member))
        if (members.length < inbound.members.length) drop("what is not JSON-RPC")
        return members.length === 0 ? undefined : receiver.message({ _tag: "Batch", members })
      }
      if (isNoise(inbound)) return drop("what is not JSON-RPC")
      if (inbound._tag === "Request" && watch.revision === "2026-07-28") return drop("requests of the server")
      receiver.message(inbound)
    }
    return {
      message,
      refused: (id, error) => receiver.refused?.(id, error),
      missed: (error) => receiver.missed?.(error),
      end: (end) => receiver.end(end)
    }
  }
  return {
    open: (receiver) => connection.open(guarded(receiver)),
    send: (message, about, headers) => connection.send(message, about, headers),
    drained: connection.drained,
    pause: connection.pause === undefined ? undefined : () => connection.pause!(),
    resume: connection.resume === undefined ? undefined : () => connection.resume!(),
    close: connection.close
  }
}
