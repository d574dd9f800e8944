/** Wraps Skein's client as a `TestClient`. */
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
import { bounded } from "../packages/client/test/support/fixedBounds.ts"
import type { AnyServer, Block, CallOutcome, Connect, Received, TestClient } from "./testClient.ts"

/** The HTTP implementation: `node:http` or `fetch`. */
export type HttpClientName = "node" | "fetch"

const blocks = (values: ReadonlyArray<object>): ReadonlyArray<Block> => values as ReadonlyArray<Block>

/** Options that restrict the client to one revision, if one is given. */
export const onlyRevision = (revision: Revision.Revision | "auto" | undefined): Client.Options =>
  revision === undefined || revision === "auto" ? {} : { revisions: [revision] }

const methodsOf = (client: Client.Client) => ({
  get revision() {
    return client.revision
  },
  serverName: client.server?.name,
  instructions: client.instructions,
  clientErrors: [],
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
} satisfies Omit<TestClient, "pid" | "close">)

/** Builds a scoped value, and closes the scope if that fails. */
const buildScoped = async <A, E>(make: Effect.Effect<A, E, Scope.Scope>, scope: Scope.Closeable): Promise<A> => {
  const exit = await Effect.runPromise(Effect.exit(Scope.provide(make, scope)))
  if (Exit.isSuccess(exit)) return exit.value
  await Effect.runPromise(Scope.close(scope, exit))
  throw exit.cause
}

/** The transport to a server, and the id of its process once it has started. */
const transportTo = (
  server: AnyServer,
  httpClient: HttpClientName
): { readonly transport: Transport; pid?: number } => {
  if ("url" in server) {
    const { url } = server
    // Lost streams are resumed after 10 ms.
    const options = { url, resumption: { initialDelay: "10 millis" } } as const
    return { transport: httpClient === "node" ? NodeHttp.transport(options) : Http.transport(options) }
  }
  const stdio = Stdio.transport(server)
  const target: ReturnType<typeof transportTo> = {
    transport: {
      ...stdio,
      connect: Effect.tap(stdio.connect, ({ pid }) =>
        Effect.sync(() => {
          if (pid !== undefined) target.pid = pid
        }))
    }
  }
  return target
}

/** Connects a client without handlers for server requests. */
export const connectPlain = async (
  server: AnyServer,
  revision: Revision.Revision | "auto" | undefined,
  httpClient: HttpClientName = "node"
): Promise<TestClient> => {
  const scope = Scope.makeUnsafe()
  const target = transportTo(server, httpClient)
  const client = await buildScoped(Client.make(target.transport, onlyRevision(revision)), scope)
  return {
    ...methodsOf(client),
    pid: target.pid,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

export const connect: Connect = (server, revision) => connectPlain(server, revision)

/** A running `changes` stream: its elements so far, and how to end it. */
export interface Watching {
  readonly changes: ReadonlyArray<Change>
  readonly failure: ClientError.ClientError | undefined
  readonly end: () => Promise<void>
}

/** A client that also handles requests and notifications from the server. */
export interface InteractiveSkeinClient extends TestClient {
  readonly client: Client.Client
  readonly received: Received
  /** The requests that it received, in order: `form`, `model`, or a URL. */
  readonly asked: Array<string>
  /** The default values of the forms that it received. */
  readonly defaults: Array<object>
  readonly statuses: ReadonlyArray<Status["_tag"]>
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly watch: (filter: Filter) => Watching
  /** Replaces the roots. */
  readonly setRoots: (...paths: ReadonlyArray<string>) => Promise<void>
}

/**
 * Connects a client whose user declines forms that begin with `Decline`, enters only `name` into others, and accepts
 * every URL.
 */
export const connectInteractive = async (
  server: AnyServer,
  { bounds = {}, name = "Ada", httpClient = "node", ...options }: Client.Options & {
    readonly bounds?: Parameters<typeof bounded>[0]
    readonly name?: string
    readonly httpClient?: HttpClientName
  } = {}
): Promise<InteractiveSkeinClient> => {
  const scope = Scope.makeUnsafe()
  const asked: Array<string> = []
  const defaults: Array<object> = []
  const received: Received = { updated: [], lists: [], logs: [], completed: [] }
  const statuses: Array<Status["_tag"]> = []
  const roots = await Effect.runPromise(
    SubscriptionRef.make<ReadonlyArray<Roots.Root>>([{ uri: `file:///home/${name}`, name: "home" }])
  )
  const userAnswers = Layer.mergeAll(
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
    Roots.layerStream(SubscriptionRef.changes(roots)),
    // Warnings are tested with the client.
    Logger.layer([])
  )
  const target = transportTo(server, httpClient)
  const make = Effect.gen(function*() {
    const client = yield* bounded(bounds, Client.make(target.transport, options))
    const onNotification = (notification: Parameters<typeof record>[0]) => Effect.sync(() => record(notification))
    yield* Effect.forkScoped(Stream.runForEach(client.notifications, onNotification), { startImmediately: true })
    return client
  })
  const record = (notification: Stream.Success<Client.Client["notifications"]>): void => {
    if (notification._tag === "LoggingMessage") received.logs.push(notification.params)
    if (notification._tag === "ToolListChanged") received.lists.push("tools")
    if (notification._tag === "ResourceUpdated") received.updated.push(notification.params.uri)
    if (notification._tag === "ElicitationComplete") received.completed.push(notification.params.elicitationId)
  }
  const context = await buildScoped(Layer.build(userAnswers), scope)
  const client = await buildScoped(Effect.provideContext(make, context), scope)
  const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)
  // The stream ends with the client.
  const watched = run(Stream.runForEach(client.status, ({ _tag }) => Effect.sync(() => void statuses.push(_tag))))
  return {
    ...methodsOf(client),
    pid: target.pid,
    client,
    received,
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
    setRoots: (...paths) => run(SubscriptionRef.set(roots, paths.map((path) => ({ uri: `file:///${path}` })))),
    close: async () => {
      await run(Scope.close(scope, Exit.void))
      await watched
    }
  }
}
