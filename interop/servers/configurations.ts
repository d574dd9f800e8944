/**
 * The official servers over HTTP in all their configurations, and the features that each configuration lacks.
 */
import * as Revision from "@skein/protocol/Revision"
import type { InteractiveState } from "../fixtures/interactiveState.ts"
import * as EffectFeatures from "../fixtures/effectAiFeatures.ts"
import * as EffectInteractive from "../fixtures/effectAiInteractive.ts"
import * as V1Features from "../fixtures/sdkV1Features.ts"
import * as V1Interactive from "../fixtures/sdkV1Interactive.ts"
import * as V2Features from "../fixtures/sdkV2Features.ts"
import * as V2Interactive from "../fixtures/sdkV2Interactive.ts"
import type { ServerName } from "../matrix.ts"
import type { Missing } from "../interactiveServerTests.ts"
import * as EffectAi from "./effectAi.ts"
import type { HttpServer } from "./httpServer.ts"
import * as V1 from "./sdkV1.ts"
import * as V2 from "./sdkV2.ts"

export interface Configuration {
  readonly server: Exclude<ServerName, "skein">
  readonly name: string
  readonly revisions: ReadonlyArray<Revision.Revision>
  /** The revision that a client with default options negotiates. */
  readonly negotiated: Revision.Revision
  /** The HTTP transport that the client finds. */
  readonly variant: "streamable" | "sse"
  readonly missing: (agreed: Revision.Revision) => ReadonlyArray<Missing>
  readonly features: () => Promise<HttpServer>
  readonly interactive: (state: InteractiveState) => Promise<HttpServer>
}

/** A server for each request has no notifications outside of calls, and no state from earlier requests. */
const stateless: ReadonlyArray<Missing> = ["resourceUpdates", "listChanges", "logLevels", "rootsChanges"]
const none = (): ReadonlyArray<Missing> => []

export const configurations: ReadonlyArray<Configuration> = [
  {
    server: "sdk-v1",
    name: "sessions",
    revisions: Revision.sessionBased,
    negotiated: "2025-11-25",
    variant: "streamable",
    missing: none,
    features: () => V1.streamable(V1Features.make, "sessions"),
    interactive: (state) => V1.streamable(() => V1Interactive.make(state), "sessions")
  },
  {
    server: "sdk-v1",
    name: "sessions, JSON responses",
    revisions: ["2025-03-26", "2025-11-25"],
    negotiated: "2025-11-25",
    variant: "streamable",
    // Notifications of a call have no stream, and the SDK drops them.
    missing: () => ["callNotifications"],
    features: () => V1.streamable(V1Features.make, "json"),
    interactive: (state) => V1.streamable(() => V1Interactive.make(state, { standaloneStream: true }), "json")
  },
  {
    server: "sdk-v1",
    name: "stateless",
    revisions: ["2025-03-26", "2025-11-25"],
    negotiated: "2025-11-25",
    variant: "streamable",
    // It sends requests on the stream of a call, and the response reaches another server than the one that waits for
    // it.
    missing: () => ["clientResponses", ...stateless],
    features: () => V1.streamable(V1Features.make, "stateless"),
    interactive: (state) => V1.streamable(() => V1Interactive.make(state), "stateless")
  },
  {
    server: "sdk-v1",
    name: "HTTP+SSE",
    revisions: Revision.sessionBased,
    negotiated: "2025-11-25",
    variant: "sse",
    missing: none,
    features: () => V1.sse(V1Features.make),
    interactive: (state) => V1.sse(() => V1Interactive.make(state))
  },
  {
    server: "sdk-v2",
    name: "sessions",
    revisions: Revision.sessionBased,
    negotiated: "2025-11-25",
    variant: "streamable",
    missing: () => ["urlCompletion"],
    features: () => V2.sessions(() => V2Features.make()),
    interactive: (state) => V2.sessions(() => V2Interactive.make(state))
  },
  {
    server: "sdk-v2",
    name: "stateless",
    revisions: ["2026-07-28"],
    negotiated: "2026-07-28",
    variant: "streamable",
    missing: () => ["urlCompletion"],
    features: () => V2.handler(() => V2Features.make()),
    interactive: (state) => V2.handler((notifyAll) => V2Interactive.make(state, { notifyAll }))
  },
  {
    server: "sdk-v2",
    name: "stateless, JSON responses",
    revisions: ["2026-07-28"],
    negotiated: "2026-07-28",
    variant: "streamable",
    missing: () => ["urlCompletion", "callNotifications", "logLevels"],
    features: () => V2.handler(() => V2Features.make(), { responseMode: "json" }),
    interactive: (state) =>
      V2.handler((notifyAll) => V2Interactive.make(state, { notifyAll }), { responseMode: "json" })
  },
  {
    server: "sdk-v2",
    name: "stateless in all revisions",
    revisions: ["2025-03-26", "2025-11-25", "2026-07-28"],
    negotiated: "2026-07-28",
    variant: "streamable",
    missing: (agreed) => agreed === "2026-07-28" ? ["urlCompletion"] : ["serverRequests", ...stateless],
    features: () => V2.handler(() => V2Features.make(), { legacy: "stateless" }),
    interactive: (state) => V2.handler((notifyAll) => V2Interactive.make(state, { notifyAll }), { legacy: "stateless" })
  },
  {
    server: "effect-ai",
    name: "one endpoint",
    revisions: Revision.all,
    negotiated: "2026-07-28",
    variant: "streamable",
    // In sessions it has no standalone stream. It does not support completed URL elicitations and changed roots. In
    // 2025-06-18, which has defaults of booleans only, it rejects forms with other defaults.
    missing: (agreed) => [
      "urlCompletion",
      "urlRequired",
      "toolRemoval",
      ...(agreed === "2026-07-28" ? [] : ["resourceUpdates", "listChanges", "rootsChanges"] as const),
      ...(agreed === "2025-06-18" ? ["formDefaults"] as const : [])
    ],
    features: () => EffectAi.startServer(() => EffectFeatures.registrations),
    interactive: (state) => EffectAi.startServer(() => EffectInteractive.registrations(state))
  }
]
