/**
 * A host in a browser that uses a client. It runs in a page, in a worker, and in a context with web APIs only. It
 * returns its observations, which the test checks.
 */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as ClientPool from "@skein/client/ClientPool"
import type { Change } from "@skein/client/Changes"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as Progress from "@skein/client/Progress"
import * as ResponseCache from "@skein/client/ResponseCache"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** The endpoint URLs of the servers. */
export interface Servers {
  /** Supports all revisions. */
  readonly modern: string
  /** Supports only session-based revisions. */
  readonly session: string
  /** Responds, but rejects pages of this origin. */
  readonly foreign: string
  /** Responds to every origin, but without CORS headers, so that no page can read the response. */
  readonly unreadable: string
  /** No server listens there. */
  readonly nobody: string
  /** Redirects to another server. */
  readonly moved: string
}

const textOf = ({ content }: CallToolResult): string =>
  content.map((part) => part.type === "text" ? part.text : "").join()

const answering = Layer.mergeAll(
  Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ name: "Ada" })) }),
  Sampling.layer(() =>
    Effect.succeed({
      role: "assistant",
      content: { type: "text", text: "a haiku" },
      model: "small",
      stopReason: "endTurn"
    })
  ),
  Roots.layer([{ uri: "file:///notes", name: "Notes" }])
)

/** Makes every kind of request to one server. */
const visit = (url: string) =>
  Effect.gen(function*() {
    const memory = ResponseCache.make()
    let kept = 0
    const store: ResponseCache.Store = {
      ...memory,
      get: (key) => Effect.tap(memory.get(key), (entry) => Effect.sync(() => void (entry !== undefined && kept++)))
    }
    const client = yield* Client.make(Http.transport({ url, resumption: { initialDelay: 20 } }), {
      info: { name: "page", version: "1.0.0" },
      cache: { store, server: url }
    })
    const text = (name: string, args?: object) => Effect.map(client.callTool(name, args), textOf)

    const { tools } = yield* client.listToolsPage()
    yield* client.listToolsPage()
    const mirrored = yield* text("mirrored", { region: "Grüße", count: 3 })
    const progress = yield* Stream.runCollect(
      Progress.stream((onProgress) => client.callTool("steps", {}, { onProgress }))
    )
    const question = yield* text("ask")

    const about = { key: crypto.randomUUID() }
    const call = yield* Effect.forkChild(client.callTool("hang", about), { startImmediately: true })
    const begun = yield* text("begun", about)
    yield* Fiber.interrupt(call)
    const cancelled = yield* text("cancelled", about)

    const changes: Array<Change["_tag"]> = []
    yield* Stream.runForEach(client.changes({ tools: true }), (change) => {
      changes.push(change._tag)
      return change._tag === "Subscribed" ? Effect.asVoid(client.callTool("change")) : Effect.void
    }).pipe(Effect.raceFirst(Effect.repeat(Effect.sleep(5), { until: () => changes.includes("ToolListChanged") })))

    const cut = yield* Effect.match(client.callTool("cut", {}, { onProgress: () => {} }), {
      onFailure: ({ reason }) => reason._tag,
      onSuccess: textOf
    })

    return {
      revision: client.revision,
      server: client.server?.name,
      tools: tools.length,
      kept,
      mirrored,
      progress: progress.map((update) => update._tag === "Progress" ? update.progress : textOf(update.result)),
      question,
      begun,
      cancelled,
      changes,
      resumed: yield* text("resume"),
      cut
    }
  }).pipe(Effect.provide(answering), Effect.scoped)

const refusalOf = (url: string) =>
  Effect.match(Effect.scoped(Client.make(Http.transport({ url }))), {
    onFailure: ({ message, reason }: ClientError) => ({ reason: reason._tag, message }),
    onSuccess: () => "connected"
  })

/** The tools of a pool of both servers. */
const pooled = ({ modern, nobody, session }: Servers) =>
  Effect.gen(function*() {
    const pool = yield* ClientPool.make({
      modern: { transport: Http.transport({ url: modern }) },
      session: { transport: Http.transport({ url: session }) },
      nobody: { transport: Http.transport({ url: nobody }) }
    })
    return (yield* pool.tools).map(({ result, server }) => [server, Result.isSuccess(result)])
  }).pipe(Effect.scoped)

/**
 * Opens concurrent sessions. A browser has six connections for each server, so that with `listen`, where each session
 * holds one for its stream, five sessions leave one for requests. Without `listen` there may be more.
 */
const beside = (url: string, count: number, listen: boolean) =>
  Effect.gen(function*() {
    const clients = yield* Effect.all(
      Array.from({ length: count }, () => Client.make(Http.transport({ url, standaloneStream: listen }))),
      {
        concurrency: "unbounded"
      }
    )
    return yield* Effect.all(
      clients.map((client) => Effect.map(client.callTool("steps"), textOf)),
      { concurrency: "unbounded" }
    )
  }).pipe(Effect.scoped)

const outcomeOf = <A>(what: Effect.Effect<A, unknown>): Effect.Effect<A | string> =>
  Effect.catchCause(what, (cause) => Effect.succeed(String(cause)))

/** Runs all parts. Never fails: a failed part has its error as its result. */
export const run = (servers: Servers) =>
  Effect.runPromise(Effect.gen(function*() {
    return {
      modern: yield* outcomeOf(visit(servers.modern)),
      session: yield* outcomeOf(visit(servers.session)),
      pooled: yield* outcomeOf(pooled(servers)),
      beside: yield* outcomeOf(beside(servers.session, 5, true)),
      deaf: yield* outcomeOf(beside(servers.session, 8, false)),
      refused: {
        foreign: yield* refusalOf(servers.foreign),
        unreadable: yield* refusalOf(servers.unreadable),
        nobody: yield* refusalOf(servers.nobody),
        moved: yield* refusalOf(servers.moved)
      }
    }
  }))

/** The observations of the program. */
export type Seen = Awaited<ReturnType<typeof run>>

/** Opens a session until the page is left, as a host does. */
export const stay = async (url: string): Promise<string> => {
  const scope = await Effect.runPromise(Scope.make())
  const opening = Client.make(Http.transport({ url }), { revisions: ["2025-11-25"] })
  const client = await Effect.runPromise(Scope.provide(opening, scope))
  addEventListener("pagehide", () => void Effect.runFork(Scope.close(scope, Exit.void)))
  return client.revision
}

/** Calls one tool of a session. */
export const call = (url: string): Promise<string> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const transport = Http.transport({ url, resumption: { initialDelay: 20 } })
    const client = yield* Client.make(transport, { revisions: ["2025-11-25"], enforceCapabilities: false })
    return textOf(yield* client.callTool("any"))
  })))

// A global of pages, which the types of this project do not include.
declare const addEventListener: (type: "pagehide", listener: () => void) => void
