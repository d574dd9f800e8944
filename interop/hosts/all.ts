/**
 * The servers of others over HTTP, and what each way of serving cannot do.
 */
import * as Revision from "@skein/protocol/Revision"
import type * as Board from "../fixtures/board.ts"
import * as EffectOffer from "../fixtures/effect-offer.ts"
import * as EffectTalk from "../fixtures/effect-talk.ts"
import * as V1Offer from "../fixtures/sdk-v1-offer.ts"
import * as V1Talk from "../fixtures/sdk-v1-talk.ts"
import * as V2Offer from "../fixtures/sdk-v2-offer.ts"
import * as V2Talk from "../fixtures/sdk-v2-talk.ts"
import type { ServerName } from "../matrix.ts"
import type { Lack } from "../talks.ts"
import * as EffectAi from "./effect-ai.ts"
import type { Host } from "./host.ts"
import * as V1 from "./sdk-v1.ts"
import * as V2 from "./sdk-v2.ts"

export interface Way {
  readonly server: Exclude<ServerName, "skein">
  readonly way: string
  readonly revisions: ReadonlyArray<Revision.Revision>
  /** What is found out where nobody says. */
  readonly found: Revision.Revision
  /** How it was reached. */
  readonly variant: "streamable" | "sse"
  readonly lacks: (agreed: Revision.Revision) => ReadonlyArray<Lack>
  readonly offer: () => Promise<Host>
  readonly talk: (board: Board.Board) => Promise<Host>
}

/** A session for each request: nothing is told unasked, and whatever else belongs to the same session never gets there. */
const alone: ReadonlyArray<Lack> = ["updates", "lists", "levels", "roots"]
const nothing = (): ReadonlyArray<Lack> => []

export const ways: ReadonlyArray<Way> = [
  {
    server: "sdk-v1",
    way: "sessions",
    revisions: Revision.sessionEra,
    found: "2025-11-25",
    variant: "streamable",
    lacks: nothing,
    offer: () => V1.streamable(V1Offer.make, "sessions"),
    talk: (board) => V1.streamable(() => V1Talk.make(board), "sessions")
  },
  {
    server: "sdk-v1",
    way: "sessions and one JSON answer",
    revisions: ["2025-03-26", "2025-11-25"],
    found: "2025-11-25",
    variant: "streamable",
    // What belongs to a call has no stream to go on, and the SDK drops it.
    lacks: () => ["telling"],
    offer: () => V1.streamable(V1Offer.make, "json"),
    talk: (board) => V1.streamable(() => V1Talk.make(board, { aside: true }), "json")
  },
  {
    server: "sdk-v1",
    way: "no sessions",
    revisions: ["2025-03-26", "2025-11-25"],
    found: "2025-11-25",
    variant: "streamable",
    // It asks on the stream of the call, and the answer comes to another server than that which waits for it.
    lacks: () => ["hearing", ...alone],
    offer: () => V1.streamable(V1Offer.make, "stateless"),
    talk: (board) => V1.streamable(() => V1Talk.make(board), "stateless")
  },
  {
    server: "sdk-v1",
    way: "HTTP+SSE",
    revisions: Revision.sessionEra,
    found: "2025-11-25",
    variant: "sse",
    lacks: nothing,
    offer: () => V1.sse(V1Offer.make),
    talk: (board) => V1.sse(() => V1Talk.make(board))
  },
  {
    server: "sdk-v2",
    way: "sessions",
    revisions: Revision.sessionEra,
    found: "2025-11-25",
    variant: "streamable",
    lacks: () => ["completed"],
    offer: () => V2.sessions(() => V2Offer.make()),
    talk: (board) => V2.sessions(() => V2Talk.make(board))
  },
  {
    server: "sdk-v2",
    way: "a server for each request",
    revisions: ["2026-07-28"],
    found: "2026-07-28",
    variant: "streamable",
    lacks: () => ["completed"],
    offer: () => V2.handler(() => V2Offer.make()),
    talk: (board) => V2.handler((notify) => V2Talk.make(board, { notify }))
  },
  {
    server: "sdk-v2",
    way: "a server and one JSON answer for each request",
    revisions: ["2026-07-28"],
    found: "2026-07-28",
    variant: "streamable",
    lacks: () => ["completed", "telling", "levels"],
    offer: () => V2.handler(() => V2Offer.make(), { responseMode: "json" }),
    talk: (board) => V2.handler((notify) => V2Talk.make(board, { notify }), { responseMode: "json" })
  },
  {
    server: "sdk-v2",
    way: "a server for each request, older ones without sessions",
    revisions: ["2025-03-26", "2025-11-25", "2026-07-28"],
    found: "2026-07-28",
    variant: "streamable",
    lacks: (agreed) => agreed === "2026-07-28" ? ["completed"] : ["asking", ...alone],
    offer: () => V2.handler(() => V2Offer.make(), { legacy: "stateless" }),
    talk: (board) => V2.handler((notify) => V2Talk.make(board, { notify }), { legacy: "stateless" })
  },
  {
    server: "effect-ai",
    way: "one endpoint",
    revisions: Revision.all,
    found: "2026-07-28",
    variant: "streamable",
    // It has no stream of its own in a session, and no word for a visit that is over, or for roots that are others.
    // Defaults of anything but booleans are not in 2025-06-18: there it does not ask.
    lacks: (agreed) => [
      "completed",
      "gates",
      "removing",
      ...(agreed === "2026-07-28" ? [] : ["updates", "lists", "roots"] as const),
      ...(agreed === "2025-06-18" ? ["defaults"] as const : [])
    ],
    offer: () => EffectAi.serve(() => EffectOffer.registrations),
    talk: (board) => EffectAi.serve(() => EffectTalk.registrations(board))
  }
]
