/** Our own client. */
import type { Change, Filter } from "@skein/client/Changes"
import * as Client from "@skein/client/Client"
import type * as ClientError from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import type { Status } from "@skein/client/Status"
import * as Stdio from "@skein/client/Stdio"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { AnyClient, Block, CallOutcome, Connect, Heard, ServerAddress, ServerCommand } from "./clients.ts"

/** What makes the requests over HTTP: `node:http`, or `fetch`. */
export type Wire = "node" | "fetch"

const blocks = (values: ReadonlyArray<object>): ReadonlyArray<Block> => values as ReadonlyArray<Block>

export const held = (revision: Revision.Revision | "auto" | undefined): Client.Options =>
  revision === undefined || revision === "auto" ? {} : { revisions: [revision] }

const face = (client: Client.Client) => ({
  get revision() {
    return client.revision
  },
  serverName: client.server?.name,
  instructions: client.instructions,
  complaints: [],
  tools: async () => blocks(await Effect.runPromise(client.listTools())),
  call: async (name, args, { onProgress, signal } = {}) => {
    const call = client.callTool(name, args, {
      onProgress: onProgress === undefined
        ? undefined
        : ({ message, progress, total }) => onProgress({ message, progress, total })
    })
    const result = await Effect.runPromise(call, { signal })
    return { ...result, isError: result.isError === true } as unknown as CallOutcome
  },
  resources: async () => (await Effect.runPromise(client.listResources())).map(({ uri }) => uri),
  templates: async () =>
    (await Effect.runPromise(client.listResourceTemplates())).map(({ uriTemplate }) => uriTemplate),
  read: async (uri) => blocks((await Effect.runPromise(client.readResource(uri))).contents),
  prompts: async () => blocks(await Effect.runPromise(client.listPrompts())),
  prompt: async (name, args) => blocks((await Effect.runPromise(client.getPrompt(name, args))).messages)
} satisfies Omit<AnyClient, "pid" | "close">)

/** Runs what makes something that lives in a scope, which is closed again where that fails. */
const scoped = async <A, E>(make: Effect.Effect<A, E, Scope.Scope>, scope: Scope.Closeable): Promise<A> => {
  const exit = await Effect.runPromise(Effect.exit(Scope.provide(make, scope)))
  if (Exit.isSuccess(exit)) return exit.value
  await Effect.runPromise(Scope.close(scope, exit))
  throw exit.cause
}

/** How a server is reached, and the process that is made for it. */
const reach = (server: ServerCommand | ServerAddress, wire: Wire): { readonly transport: Transport; pid?: number } => {
  if ("url" in server) {
    const { url } = server
    // A stream that is lost is asked for again soon.
    const options = { url, resumption: { initialDelay: "10 millis" } } as const
    return { transport: wire === "node" ? NodeHttp.transport(options) : Http.transport(options) }
  }
  const stdio = Stdio.transport(server)
  const reached: ReturnType<typeof reach> = {
    transport: {
      ...stdio,
      connect: Effect.tap(stdio.connect, ({ pid }) =>
        Effect.sync(() => {
          if (pid !== undefined) reached.pid = pid
        }))
    }
  }
  return reached
}

/** The client as it comes: it can be asked nothing. */
export const connectTo = async (
  server: ServerCommand | ServerAddress,
  revision: Revision.Revision | "auto" | undefined,
  wire: Wire = "node"
): Promise<AnyClient> => {
  const scope = Scope.makeUnsafe()
  const reached = reach(server, wire)
  const client = await scoped(Client.make(reached.transport, held(revision)), scope)
  return {
    ...face(client),
    pid: reached.pid,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

export const connect: Connect = (server, revision) => connectTo(server, revision)

/** A run of `changes`: what it gave so far, and how to end it. */
export interface Watching {
  readonly changes: ReadonlyArray<Change>
  readonly failure: ClientError.ClientError | undefined
  readonly end: () => Promise<void>
}

/** Our client with all that it does beside asking: it answers, and listens. */
export interface Host extends AnyClient {
  readonly client: Client.Client
  readonly heard: Heard
  /** What it was asked, in order. */
  readonly asked: Array<string>
  /** What its user was shown a form with to begin with. */
  readonly defaults: Array<object>
  readonly statuses: ReadonlyArray<Status["_tag"]>
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly watch: (filter: Filter) => Watching
  /** Works in other places from now on. */
  readonly move: (...places: ReadonlyArray<string>) => Promise<void>
}

/** The user declines what begins with `Decline`, enters `name` and nothing else, and agrees to every address. */
export const talk = async (
  server: ServerCommand | ServerAddress,
  { name = "Ada", wire = "node", ...options }: Client.Options & { readonly name?: string; readonly wire?: Wire } = {}
): Promise<Host> => {
  const scope = Scope.makeUnsafe()
  const asked: Array<string> = []
  const defaults: Array<object> = []
  const heard: Heard = { updated: [], lists: [], logs: [], completed: [] }
  const statuses: Array<Status["_tag"]> = []
  const places = await Effect.runPromise(
    SubscriptionRef.make<ReadonlyArray<Roots.Root>>([{ uri: `file:///home/${name}`, name: "home" }])
  )
  const answers = Layer.mergeAll(
    Elicitation.layer({
      form: (request) =>
        Effect.sync(() => {
          asked.push("form")
          defaults.push(request.defaults)
          return request.message.startsWith("Decline") ? Elicitation.decline : Elicitation.accept({ name })
        }),
      url: ({ url }) =>
        Effect.sync(() => {
          asked.push(url.href)
          return Elicitation.consent()
        })
    }),
    Sampling.layer(() =>
      Effect.sync(() => {
        asked.push("model")
        return { model: "interop", role: "assistant", content: { type: "text", text: `${name} said` } } as const
      })
    ),
    Roots.layerStream(SubscriptionRef.changes(places)),
    // What it warns of belongs to the tests of the client.
    Logger.layer([])
  )
  const reached = reach(server, wire)
  const make = Effect.gen(function*() {
    const client = yield* Client.make(reached.transport, options)
    const listen = (notice: Parameters<typeof note>[0]) => Effect.sync(() => note(notice))
    yield* Effect.forkScoped(Stream.runForEach(client.notifications, listen), { startImmediately: true })
    return client
  })
  const note = (notice: Stream.Success<Client.Client["notifications"]>): void => {
    if (notice._tag === "LoggingMessage") heard.logs.push(notice.params)
    if (notice._tag === "ToolListChanged") heard.lists.push("tools")
    if (notice._tag === "ResourceUpdated") heard.updated.push(notice.params.uri)
    if (notice._tag === "ElicitationComplete") heard.completed.push(notice.params.elicitationId)
  }
  const context = await scoped(Layer.build(answers), scope)
  const client = await scoped(Effect.provideContext(make, context), scope)
  const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)
  // It ends by itself, when the client has.
  const watched = run(Stream.runForEach(client.status, ({ _tag }) => Effect.sync(() => void statuses.push(_tag))))
  return {
    ...face(client),
    pid: reached.pid,
    client,
    heard,
    asked,
    defaults,
    statuses,
    run,
    watch: (filter) => {
      const changes: Array<Change> = []
      const watching: { -readonly [K in keyof Watching]: Watching[K] } = {
        changes,
        failure: undefined,
        end: () => Effect.runPromise(Scope.close(inner, Exit.void))
      }
      const inner = Scope.makeUnsafe()
      Effect.runSync(
        client.changes(filter).pipe(
          Stream.runForEach((change) => Effect.sync(() => void changes.push(change))),
          Effect.catch((failure) => Effect.sync(() => void (watching.failure = failure))),
          Effect.forkScoped({ startImmediately: true }),
          Scope.provide(inner)
        )
      )
      return watching
    },
    move: (...to) => run(SubscriptionRef.set(places, to.map((place) => ({ uri: `file:///${place}` })))),
    close: async () => {
      await run(Scope.close(scope, Exit.void))
      await watched
    }
  }
}
