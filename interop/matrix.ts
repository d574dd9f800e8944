/**
 * The pairs of clients and servers, and their revisions.
 *
 * The revisions of the official packages, from their sources and confirmed by these tests:
 *
 * |                    | 2024-11-05 | 2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28 | selected with               |
 * | ------------------ | ---------- | ---------- | ---------- | ---------- | ---------- | --------------------------- |
 * | SDK v1 client      | yes        | yes        | yes        | newest     | no         | no option; the tests change |
 * |                    |            |            |            |            |            | its `initialize`            |
 * | SDK v1 server      | yes        | yes        | yes        | newest     | no         | the client's request        |
 * | SDK v2 client      | yes        | yes        | yes        | default    | yes        | `versionNegotiation`,       |
 * |                    |            |            |            |            |            | `supportedProtocolVersions` |
 * | SDK v2 server      | yes        | yes        | yes        | newest     | yes        | `serveStdio`,               |
 * |                    |            |            |            |            |            | `supportedProtocolVersions` |
 * | `effect/ai` server | yes        | yes        | yes        | newest     | yes        | `protocols`                 |
 *
 * SDK v1's client requests its newest revision and accepts any that it knows. SDK v2's client selects a revision with
 * `supportedProtocolVersions`, and 2026-07-28 with `versionNegotiation` `auto` or a pin. SDK v2's server has older
 * revisions with `supportedProtocolVersions` and `connect`; `serveStdio` adds 2026-07-28. Neither SDK adapts messages
 * to older revisions: both send the newest content types and members that they know.
 *
 * Official clients with Skein's server over HTTP:
 *
 * | Feature                 | SDK v1                       | SDK v2                        | Inspector `--cli`        |
 * | ----------------------- | ---------------------------- | ----------------------------- | ------------------------ |
 * | Streamable HTTP         | 2024-11-05 to 2025-11-25     | all five revisions            | 2025-11-25 and           |
 * |                         |                              |                               | 2026-07-28               |
 * |                         |                              |                               | (`--protocol-era`)       |
 * | HTTP+SSE                | revisions with sessions      | revisions with sessions       | 2025-11-25               |
 * | elicitation, sampling,  | yes; forms since 2025-06-18, | the same                      | no, returns an error;    |
 * | roots                   | which introduced them, URLs  |                               | its list of roots is     |
 * |                         | since 2025-11-25             |                               | empty                    |
 * | logs, subscriptions,    | yes                          | yes; in 2026-07-28 with       | not in one call          |
 * | list changes            |                              | `_meta` and                   |                          |
 * |                         |                              | `subscriptions/listen`        |                          |
 * | ping                    | yes                          | not in 2026-07-28, which has  | no                       |
 * |                         |                              | no ping                       |                          |
 * | resuming a stream       | yes                          | yes; 2026-07-28 has no        | no: it exits after its   |
 * |                         |                              | resumption                    | call                     |
 * | cancellation            | a notification               | the same; in 2026-07-28 it    | no                       |
 * |                         |                              | closes the stream             |                          |
 * | batches (2025-03-26)    | not by the client; by the    | the same                      | no                       |
 * |                         | transport if asked to        |                               |                          |
 * | continuing a session in | if the application stores    | the same                      | no                       |
 * | another process         | the session id and the last  |                               |                          |
 * |                         | event id                     |                               |                          |
 * | `Mcp-Param-*` headers   | no: they are part of         | yes, for tools that it has    | yes                      |
 * |                         | 2026-07-28                   | listed; else it is rejected,  |                          |
 * |                         |                              | lists and retries, which      |                          |
 * |                         |                              | fails for some of several     |                          |
 * |                         |                              | calls at once                 |                          |
 * | DELETE at the end       | if the application calls it  | the same                      | no: its sessions expire  |
 * | expired session         | the call fails; the          | the same                      | creates one for each     |
 * |                         | application must create a    |                               | call                     |
 * |                         | new client                   |                               |                          |
 *
 * Skein's client with official servers over HTTP (tests: `servers/configurations.ts` and `interactiveServerTests.ts`):
 *
 * | Feature                 | SDK v1                       | SDK v2                        | `effect/ai`              |
 * | ----------------------- | ---------------------------- | ----------------------------- | ------------------------ |
 * | sessions with a         | yes; responds 200 to DELETE  | the same                      | sessions without the     |
 * | standalone stream       |                              |                               | stream; responds 204; it |
 * |                         |                              |                               | declares `listChanged`   |
 * |                         |                              |                               | nevertheless             |
 * | without sessions        | never receives responses to  | 2026-07-28 completely; in     | 2026-07-28               |
 * |                         | requests on the stream of a  | older revisions without       |                          |
 * |                         | call                         | requests to the client        |                          |
 * | JSON responses          | drops progress, and requests | drops progress and logs       | no                       |
 * |                         | on the stream of a call      |                               |                          |
 * | HTTP+SSE                | yes                          | no                            | no                       |
 * | resuming a stream       | with an event store          | the same                      | no                       |
 * | unknown session         | 404; 400 if the server has   | 404                           | 404                      |
 * |                         | one transport for all, or    |                               |                          |
 * |                         | follows old examples         |                               |                          |
 * | form defaults in        | sends all, although the      | the same                      | rejects such forms       |
 * | 2025-06-18              | revision has defaults of     |                               |                          |
 * |                         | booleans only                |                               |                          |
 * | completed URL           | 2025-11-25                   | not with `inputRequired`      | no                       |
 * | elicitation             |                              |                               |                          |
 * | changed roots           | receives the notification    | the same                      | ignores the notification |
 * | new content types in    | sends them unchanged         | the same                      | the call fails           |
 * | old revisions           |                              |                               |                          |
 * | pagination              | none, unless the application | the same                      | none                     |
 * |                         | implements it                |                               |                          |
 */
import * as Revision from "@skein/protocol/Revision"
import { fileURLToPath } from "node:url"
import type { ServerCommand } from "./testClient.ts"

export type ClientName = "skein" | "sdk-v1" | "sdk-v2"
export type ServerName = "skein" | "sdk-v1" | "sdk-v2" | "effect-ai"

/** The revisions that each client or server supports. */
export const supportedRevisions: Readonly<Record<ClientName | ServerName, ReadonlyArray<Revision.Revision>>> = {
  skein: Revision.all,
  "sdk-v1": Revision.sessionBased,
  "sdk-v2": Revision.all,
  "effect-ai": Revision.all
}

export interface Pairing {
  readonly client: ClientName
  readonly server: ServerName
  /** The revision that the client is given, see `Connect`. */
  readonly ask: Revision.Revision | "auto" | undefined
  /** The only revision of the server, if it is restricted. */
  readonly serve: Revision.Revision | undefined
  /** The revision that they must negotiate. */
  readonly agreed: Revision.Revision
}

const shared = (a: ClientName, b: ServerName) =>
  supportedRevisions[a].filter((revision) => supportedRevisions[b].includes(revision))

/** Pairs of official packages, which test the fixtures and the tests themselves. */
const controls: ReadonlyArray<Pairing> = [
  { client: "sdk-v1", server: "sdk-v1", ask: "2025-06-18", serve: "2025-06-18", agreed: "2025-06-18" },
  { client: "sdk-v2", server: "sdk-v2", ask: "auto", serve: "2026-07-28", agreed: "2026-07-28" }
]

/** An official client with each revision, and with its defaults: then it uses 2025-11-25. */
const officialClient = (client: "sdk-v1" | "sdk-v2"): ReadonlyArray<Pairing> => [
  ...shared(client, "skein").map((agreed): Pairing => ({
    client,
    server: "skein",
    ask: agreed,
    serve: undefined,
    agreed
  })),
  { client, server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" }
]

/** Skein's client with a server that is restricted to one revision, for each revision; and with an unrestricted one. */
const officialServer = (server: "sdk-v1" | "sdk-v2" | "effect-ai"): ReadonlyArray<Pairing> => [
  ...shared("skein", server).map((agreed): Pairing => ({
    client: "skein",
    server,
    ask: "auto",
    serve: agreed,
    agreed
  })),
  { client: "skein", server, ask: undefined, serve: undefined, agreed: shared("skein", server).at(-1)! }
]

/** The pairs over stdio. */
export const stdioPairings: ReadonlyArray<Pairing> = [
  ...controls,
  ...officialClient("sdk-v1"),
  ...officialClient("sdk-v2"),
  { client: "sdk-v2", server: "skein", ask: "auto", serve: undefined, agreed: "2026-07-28" },
  ...officialServer("sdk-v1"),
  ...officialServer("sdk-v2"),
  ...officialServer("effect-ai")
]

/** An official client and Skein's server over HTTP. */
export interface HttpPairing extends Pairing {
  readonly client: "sdk-v1" | "sdk-v2"
  readonly server: "skein"
  readonly transport: "http" | "sse"
}

/**
 * The HTTP+SSE transport of 2024-11-05 does not depend on the revision: the official clients use it with every revision
 * that has sessions. The oldest and the newest are tested.
 */
const overHttp = (client: "sdk-v1" | "sdk-v2", transport: "http" | "sse"): ReadonlyArray<HttpPairing> => {
  const pairing = (ask: Pairing["ask"], agreed: Revision.Revision): HttpPairing => ({
    client,
    server: "skein",
    transport,
    ask,
    serve: undefined,
    agreed
  })
  const revisions = transport === "http" ? shared(client, "skein") : ["2024-11-05", "2025-11-25"] as const
  return [...revisions.map((revision) => pairing(revision, revision)), pairing(undefined, "2025-11-25")]
}

/** The pairs over HTTP. */
export const httpPairings: ReadonlyArray<HttpPairing> = [
  ...overHttp("sdk-v1", "http"),
  ...overHttp("sdk-v2", "http"),
  { client: "sdk-v2", server: "skein", transport: "http", ask: "auto", serve: undefined, agreed: "2026-07-28" },
  ...overHttp("sdk-v1", "sse"),
  ...overHttp("sdk-v2", "sse")
]

/** A suffix for test titles: how the client selected the revision, if none was given. */
export const negotiationLabel = ({ ask }: Pairing): string =>
  ask === undefined ? ", default" : ask === "auto" ? ", negotiated" : ""

/**
 * Several nodes that serve one server do not behave as one node in all respects:
 *
 * | Behaviour                          | One node                        | Several nodes                                    |
 * | ---------------------------------- | ------------------------------- | ------------------------------------------------ |
 * | a tool that is added at run time   | is listed, and can be called    | the same at the node that has added it; the      |
 * |                                    |                                 | others announce it, but do not have it           |
 */
export interface Expectations {
  readonly sharesAddedTools: boolean
}

export const oneNode: Expectations = { sharesAddedTools: true }
export const severalNodes: Expectations = { sharesAddedTools: false }

const fixtureNames: Readonly<Record<ServerName, string>> = {
  skein: "skein",
  "sdk-v1": "sdkV1",
  "sdk-v2": "sdkV2",
  "effect-ai": "effectAi"
}

/** The command of a fixture server over stdio, restricted to one revision if given. */
export const serverCommand = (
  server: ServerName,
  kind: "Features" | "Interactive",
  revision?: Revision.Revision
): ServerCommand => ({
  command: process.execPath,
  args: [
    "--conditions=@skein/source",
    fileURLToPath(new URL(`./fixtures/${fixtureNames[server]}${kind}Server.ts`, import.meta.url)),
    ...(revision === undefined ? [] : [revision])
  ]
})
