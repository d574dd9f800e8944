/**
 * What a host in a browser does with a client: run in a page, in a worker, and where there is nothing but what the web has. It says
 * what it has seen, and the test judges.
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

/** Where the servers are that the program speaks to: the addresses of their endpoints. */
export interface Servers {
  /** Speaks all revisions. */
  readonly modern: string
  /** Speaks those with sessions alone. */
  readonly session: string
  /** Answers, but not to pages of this origin. */
  readonly foreign: string
  /** Answers every origin, but lets no page read it: no `Cors`. */
  readonly unreadable: string
  /** Nobody listens there. */
  readonly nobody: string
  /** Leads elsewhere. */
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

/** Everything that one server is asked. */
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

/** What a pool of both says. */
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
 * As many sessions beside each other as six connections take, each of which holds one for its stream, with one left for what is asked;
 * or more, which hold none.
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

const told = <A>(what: Effect.Effect<A, unknown>): Effect.Effect<A | string> =>
  Effect.catchCause(what, (cause) => Effect.succeed(String(cause)))

/** Does it all. Never fails: what went wrong stands where its result would. */
export const run = (servers: Servers) =>
  Effect.runPromise(Effect.gen(function*() {
    return {
      modern: yield* told(visit(servers.modern)),
      session: yield* told(visit(servers.session)),
      pooled: yield* told(pooled(servers)),
      beside: yield* told(beside(servers.session, 5, true)),
      deaf: yield* told(beside(servers.session, 8, false)),
      refused: {
        foreign: yield* refusalOf(servers.foreign),
        unreadable: yield* refusalOf(servers.unreadable),
        nobody: yield* refusalOf(servers.nobody),
        moved: yield* refusalOf(servers.moved)
      }
    }
  }))

/** What the program has seen. */
export type Seen = Awaited<ReturnType<typeof run>>

/** Opens a session, for as long as the page is there: that is what a host does. */
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

// A host's own global; the types of this tree know nothing of pages.
declare const addEventListener: (type: "pagehide", listener: () => void) => void
