/**
 * Who meets whom, in which revision.
 *
 * What the official packages can be made to speak (read in their sources, and proved by the suite):
 *
 * |                 | 2024-11-05 | 2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28 | how a revision is chosen                    |
 * | --------------- | ---------- | ---------- | ---------- | ---------- | ---------- | ------------------------------------------- |
 * | SDK v1 client   | yes        | yes        | yes        | newest     | no         | no option: it asks for the newest and takes |
 * |                 |            |            |            |            |            | what it knows. Here the request is changed  |
 * |                 |            |            |            |            |            | on its way out                              |
 * | SDK v1 server   | yes        | yes        | yes        | newest     | no         | the client's choice                         |
 * | SDK v2 client   | yes        | yes        | yes        | default    | yes        | `supportedProtocolVersions`;                |
 * |                 |            |            |            |            |            | `versionNegotiation` `auto` or a pin        |
 * | SDK v2 server   | yes        | yes        | yes        | newest     | yes        | `supportedProtocolVersions` and `connect`;  |
 * |                 |            |            |            |            |            | `serveStdio` adds 2026-07-28                |
 * | `effect/ai`     | yes        | yes        | yes        | newest     | yes        | `protocols`                                 |
 * | server          |            |            |            |            |            |                                             |
 *
 * Neither SDK lowers a message: in an older revision both write the content kinds and members of the newest one that they
 * know.
 *
 * What the official clients do with our server over HTTP, and what they cannot:
 *
 * |                         | SDK v1                      | SDK v2                            | Inspector `--cli`             |
 * | ----------------------- | --------------------------- | --------------------------------- | ----------------------------- |
 * | Streamable HTTP         | 2024-11-05 to 2025-11-25    | all five                          | 2025-11-25 and 2026-07-28     |
 * |                         |                             |                                   | (`--protocol-era`)            |
 * | HTTP+SSE                | the session era             | the session era                   | 2025-11-25                    |
 * | asked for forms, its    | yes; forms since 2025-06-18, which is the first to have them,   | no, and says so; its roots    |
 * | model, its roots        | and URLs since 2025-11-25                                       | are none                      |
 * | logs, subscriptions,    | yes                         | yes; in 2026-07-28 by `_meta` and | not in one call               |
 * | list changes            |                             | `subscriptions/listen`            |                               |
 * | ping                    | yes                         | not in 2026-07-28, which has none | no                            |
 * | coming back to a stream | yes                         | yes; 2026-07-28 has no such thing | no: it ends with its answer   |
 * | cancelling              | a notification              | the same; in 2026-07-28 it leaves | no                            |
 * | batches (2025-03-26)    | its client sends none; its transport does, told to              | no                            |
 * | going on with a session | its host keeps the id, and the last event that was seen         | no                            |
 * | in another process      |                                                                 |                               |
 * | mirrored arguments      | no: they are of 2026-07-28  | yes, of tools that it has listed; | yes                           |
 * |                         |                             | else it is refused, lists, and    |                               |
 * |                         |                             | tries again, which calls at the   |                               |
 * |                         |                             | same time spoil for each other    |                               |
 * | DELETE at the end       | where its host says so                                          | no: its sessions expire       |
 * | a session that is gone  | the call fails; its host has to make a new client               | makes one for each call       |
 *
 * What our client finds with their servers over HTTP, and what they cannot (`hosts/all.ts` and `talks.ts` have the tests):
 *
 * |                         | SDK v1                      | SDK v2                            | `effect/ai`                   |
 * | ----------------------- | --------------------------- | --------------------------------- | ----------------------------- |
 * | a session, its stream   | yes; DELETE is answered 200 | yes; the same                     | a session without a stream of |
 * |                         |                             |                                   | its own: 204; it declares     |
 * |                         |                             |                                   | `listChanged` all the same    |
 * | without sessions        | what it asks on the stream  | in 2026-07-28 all of it; before   | 2026-07-28                    |
 * |                         | of a call it never hears    | that it cannot ask                |                               |
 * | one JSON answer         | progress is dropped, and    | progress and logs are dropped     | no                            |
 * |                         | what it asks on the stream  |                                   |                               |
 * |                         | of the call is lost         |                                   |                               |
 * | HTTP+SSE                | yes                         | no                                | no                            |
 * | resuming                | with a store of its host's  | the same                          | no                            |
 * | a session it forgot     | 404; 400 where the host has | 404                               | 404                           |
 * |                         | one transport for all, or   |                                   |                               |
 * |                         | was made from old examples  |                                   |                               |
 * | defaults of a form in   | written, though only those of booleans are known there          | does not ask                  |
 * | 2025-06-18              |                                                                 |                               |
 * | the end of a visit      | 2025-11-25                  | not with `inputRequired`          | no                            |
 * | roots that are others   | heard of                                                        | not heard of                  |
 * | new kinds of content in | written as they are                                             | the call fails                |
 * | old revisions           |                                                                 |                               |
 * | pages                   | none, unless its host makes them                                | none                          |
 */
import * as Revision from "@skein/protocol/Revision"
import { fileURLToPath } from "node:url"
import type { ServerCommand } from "./clients.ts"

export type ClientName = "skein" | "sdk-v1" | "sdk-v2"
export type ServerName = "skein" | "sdk-v1" | "sdk-v2" | "effect-ai"

/** The revisions that each party speaks. */
export const speaks: Readonly<Record<ClientName | ServerName, ReadonlyArray<Revision.Revision>>> = {
  skein: Revision.all,
  "sdk-v1": Revision.sessionEra,
  "sdk-v2": Revision.all,
  "effect-ai": Revision.all
}

export interface Meeting {
  readonly client: ClientName
  readonly server: ServerName
  /** What the client is told: see `Connect`. */
  readonly ask: Revision.Revision | "auto" | undefined
  /** The one revision that the server is held to, if any. */
  readonly serve: Revision.Revision | undefined
  /** What they then have to agree on. */
  readonly agreed: Revision.Revision
}

const shared = (a: ClientName, b: ServerName) => speaks[a].filter((revision) => speaks[b].includes(revision))

/** The official pairs prove the fixtures and the expectations themselves. */
const controls: ReadonlyArray<Meeting> = [
  { client: "sdk-v1", server: "sdk-v1", ask: "2025-06-18", serve: "2025-06-18", agreed: "2025-06-18" },
  { client: "sdk-v2", server: "sdk-v2", ask: "auto", serve: "2026-07-28", agreed: "2026-07-28" }
]

/** A client that asks for one revision, of our server, which speaks them all; and as it comes: an SDK then speaks 2025. */
const theirClient = (client: "sdk-v1" | "sdk-v2"): ReadonlyArray<Meeting> => [
  ...shared(client, "skein").map((agreed): Meeting => ({
    client,
    server: "skein",
    ask: agreed,
    serve: undefined,
    agreed
  })),
  { client, server: "skein", ask: undefined, serve: undefined, agreed: "2025-11-25" }
]

/** Our client finds out what a server speaks that is held to one revision; and speaks the newest with one that is not. */
const theirServer = (server: "sdk-v1" | "sdk-v2" | "effect-ai"): ReadonlyArray<Meeting> => [
  ...shared("skein", server).map((agreed): Meeting => ({
    client: "skein",
    server,
    ask: "auto",
    serve: agreed,
    agreed
  })),
  { client: "skein", server, ask: undefined, serve: undefined, agreed: shared("skein", server).at(-1)! }
]

export const table: ReadonlyArray<Meeting> = [
  ...controls,
  ...theirClient("sdk-v1"),
  ...theirClient("sdk-v2"),
  { client: "sdk-v2", server: "skein", ask: "auto", serve: undefined, agreed: "2026-07-28" },
  ...theirServer("sdk-v1"),
  ...theirServer("sdk-v2"),
  ...theirServer("effect-ai")
]

/** A meeting over HTTP, of an official client and our server. */
export interface HttpMeeting extends Meeting {
  readonly client: "sdk-v1" | "sdk-v2"
  readonly server: "skein"
  readonly transport: "http" | "sse"
}

/**
 * The transport of 2024-11-05 is older than the other revisions, and does not care: the official clients speak the whole session
 * era over it.
 */
const overHttp = (client: "sdk-v1" | "sdk-v2", transport: "http" | "sse"): ReadonlyArray<HttpMeeting> => {
  const meeting = (ask: Meeting["ask"], agreed: Revision.Revision): HttpMeeting => ({
    client,
    server: "skein",
    transport,
    ask,
    serve: undefined,
    agreed
  })
  const revisions = transport === "http" ? shared(client, "skein") : ["2024-11-05", "2025-11-25"] as const
  return [...revisions.map((revision) => meeting(revision, revision)), meeting(undefined, "2025-11-25")]
}

export const httpTable: ReadonlyArray<HttpMeeting> = [
  ...overHttp("sdk-v1", "http"),
  ...overHttp("sdk-v2", "http"),
  { client: "sdk-v2", server: "skein", transport: "http", ask: "auto", serve: undefined, agreed: "2026-07-28" },
  ...overHttp("sdk-v1", "sse"),
  ...overHttp("sdk-v2", "sse")
]

/** How a client got to the revision, where nobody told it. */
export const manner = ({ ask }: Meeting): string =>
  ask === undefined ? ", as it comes" : ask === "auto" ? ", found out" : ""

/** How a server is started, held to one revision or not. */
export const serverCommand = (
  server: ServerName | `${ServerName}-talk`,
  revision?: Revision.Revision
): ServerCommand => ({
  command: process.execPath,
  args: [
    "--conditions=@skein/source",
    fileURLToPath(new URL(`./fixtures/${server}-server.ts`, import.meta.url)),
    ...(revision === undefined ? [] : [revision])
  ]
})
