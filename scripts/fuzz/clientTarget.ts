/** A client that reads hostile results, errors, requests and notifications of a server, in every revision. */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import * as LanguageModelSampling from "@skein/client/LanguageModelSampling"
import * as Logging from "@skein/client/Logging"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import * as Telemetry from "@skein/client/Telemetry"
import * as Toolkit from "@skein/client/Toolkit"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import type * as Hostile from "./hostileJson.ts"
import { HostileServer } from "./hostileServer.ts"
import * as Samples from "./samples.ts"
import { printableLogger, type Report, settle, type Target } from "./target.ts"
import { bounded } from "../../packages/client/test/support/fixedBounds.ts"

type Json = Hostile.Anything

const model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () => Effect.succeed([{ type: "text", text: "Hi" }]),
    streamText: () => Stream.empty
  })
)

/** A host that fills in forms, visits URLs, and answers sampling requests. */
const host = (random: Random.Random) => {
  const form = ({ defaults, problem, requestedSchema }: Elicitation.FormRequest): Elicitation.FormAnswer => {
    const content: Record<string, Json> = { ...defaults }
    for (const [name, field] of Object.entries<Json>(requestedSchema.properties)) {
      content[name] ??= field.type === "boolean"
        ? true
        : field.type === "array"
        ? ["a"]
        : field.type === "string"
        ? "a"
        : 1
    }
    return problem(content) === undefined ? Elicitation.accept(content) : Elicitation.decline
  }
  const sampling = random.chance(0.5)
    ? Sampling.layer(
      () =>
        Effect.succeed({ role: "assistant", model: "m", content: { type: "text", text: "Hi" }, stopReason: "endTurn" }),
      { tools: true, context: true }
    )
    : Layer.provide(
      LanguageModelSampling.layer({ configure: () => (effect) => effect, tools: true }),
      model
    )
  return Layer.mergeAll(
    Elicitation.layer({
      form: (request) => Effect.sync(() => form(request)),
      url: () => Effect.succeed(Elicitation.consent(Effect.void))
    }),
    sampling,
    Layer.orDie(Roots.layer([{ uri: "file:///home", name: "home" }]))
  )
}

/** Calls of a client. */
const calls: ReadonlyArray<
  (client: Client.Client, server: HostileServer, random: Random.Random) => Effect.Effect<unknown, ClientError>
> = [
  (client) => client.listTools(),
  (client) => client.listToolsPage({ cursor: "x", cache: "refresh" }),
  (client, _, random) => client.callTool(random.pick(Samples.toolNames), { a: "a" }, { onProgress: () => {} }),
  (client, _, random) =>
    Effect.andThen(client.listTools(), client.callTool(random.pick(Samples.toolNames), { a: "a", b: Samples.escapes })),
  (client) => client.callTool("t0", {}, { output: Schema.Struct({ a: Schema.String }) }),
  (client) => client.callTool("t1", {}, { output: Schema.Unknown }),
  (client, _, random) =>
    Effect.flatMap(
      client.startTask(random.pick(Samples.toolNames), {}),
      (started): Effect.Effect<unknown, ClientError> =>
        started._tag === "Finished" ? started.result : Effect.all([
          started.result,
          Stream.runDrain(started.states),
          random.chance(0.2) ? started.cancel : Effect.void
        ], { concurrency: "unbounded", mode: "result" })
    ),
  (client, { taskId }) =>
    Effect.flatMap(client.resumeTask({ taskId, tool: "t0" }, { maxTimeout: "10 seconds" }), ({ result }) => result),
  (client) => client.listTasksPage(),
  (client) => client.listResources(),
  (client) => client.listResourcesPage(),
  (client) => client.listResourceTemplates(),
  (client) => client.readResource("test://a"),
  (client) => client.listPrompts(),
  (client) => client.getPrompt("p", { a: "a" }),
  (client) => client.complete({ ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "a" } }),
  (client) => client.ping(),
  (client) => client.setLoggingLevel("debug"),
  (client) => client.request(Method.Subscribe, { uri: "test://a" }),
  (client) => client.request(Method.Discover, {}),
  (client) =>
    Effect.flatMap(
      Toolkit.make(client, { needsApproval: () => false }),
      (toolkit) =>
        Effect.forEach(toolkit.origins.keys(), (name) =>
          Effect.ignore(Effect.flatMap(toolkit.handle(name, {} as never), Stream.runDrain)), { discard: true })
    )
]

/** Describes a message of an error that must not be shown. */
export const described = ({ message }: { readonly message: unknown }): string | undefined => {
  if (typeof message !== "string" || message === "") return "an error without a message"
  if (message.length > 10_000) return `a message of ${message.length} characters: ${message.slice(0, 200)}`
  return Samples.isUnprintable(message) ? `unprintable characters in a message: ${JSON.stringify(message)}` : undefined
}

/** Checks the end of a call: it succeeds, or fails with a `ClientError` that can be shown. */
export const checked = (revision: string, exit: Exit.Exit<unknown, ClientError>, report: Report): void => {
  if (exit._tag === "Success") return
  if (Cause.hasDies(exit.cause)) return report(`${revision}: died: ${Cause.pretty(exit.cause).slice(0, 3_000)}`)
  for (const reason of exit.cause.reasons) {
    if (!Cause.isFailReason(reason)) continue
    const wrong = reason.error._tag === "ClientError" ? described(reason.error) : `not a ClientError: ${reason.error}`
    if (wrong !== undefined) report(`${revision}: ${wrong}`)
  }
}

const options = (random: Random.Random, revision: Revision.Revision): Client.Options => ({
  revisions: random.chance(0.8) ? [revision] : Revision.all,
  enforceCapabilities: random.chance(0.5),
  limits: { timeout: "2 seconds", maxTimeout: "20 seconds", shutdownTimeout: 0, maxRetries: 1 },
  tasks: { pollInterval: 100, maxFailures: 2 },
  telemetry: random.chance(0.3) ? Telemetry.make() : undefined,
  cache: random.chance(0.7) ? undefined : false,
  label: "fuzzed"
})

const moment = Effect.promise(() => new Promise<void>((resolve) => void setTimeout(resolve, 10)))

/**
 * Waits until it is done, or two minutes of the test clock are over. A module that is imported now, or work that yields
 * to the event loop, then has five seconds.
 */
export const passed = (isDone: () => boolean): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    for (let turn = 0; turn < 600; turn++) {
      yield* settle
      if (isDone()) return true
      if (turn >= 120) yield* moment
      if (turn > 2) yield* TestClock.adjust(turn < 20 ? 100 : 1_000)
    }
    return isDone()
  })

const exchange = (random: Random.Random, revision: Revision.Revision, report: Report) =>
  Effect.gen(function*() {
    const server = new HostileServer(random, revision, report)
    const layer = Layer.provide(Client.layer(server.transport, options(random, revision)), host(random))
    const connecting = yield* Effect.forkScoped(
      bounded({ cancelTimeout: 100 }, Layer.build(layer)),
      { startImmediately: true }
    )
    if (!(yield* passed(() => connecting.pollUnsafe() !== undefined))) return report(`${revision}: the handshake hangs`)
    const connected = connecting.pollUnsafe()!
    checked(revision, connected, report)
    if (connected._tag === "Failure") return
    const client = Context.get(connected.value, Client.Client)
    for (
      const stream of [
        client.changes({ tools: true, prompts: true, resources: true, uris: ["test://a"], taskIds: [server.taskId] }),
        client.logs,
        client.notifications,
        client.status
      ]
    ) {
      if (random.chance(0.5)) {
        yield* Effect.forkScoped(
          Effect.map(Effect.exit(Stream.runDrain(stream as Stream.Stream<unknown, ClientError>)), (exit) =>
            checked(revision, exit, report)),
          { startImmediately: true }
        )
      }
    }
    if (random.chance(0.5)) {
      yield* Effect.forkScoped(Logging.forward(client, { level: "debug" }))
    }
    for (let count = random.below(5); count > 0; count--) {
      server.say()
    }
    for (let count = 1 + random.below(4); count > 0; count--) {
      const call = random.pick(calls)
      const fiber = yield* Effect.forkScoped(call(client, server, random), { startImmediately: true })
      if (random.chance(0.3)) {
        server.say()
      }
      if (random.chance(0.05)) {
        yield* settle
        fiber.interruptUnsafe()
      }
      if (
        !(yield* passed(() =>
          fiber.pollUnsafe() !== undefined
        ))
      ) return report(`${revision}: ${String(call)} hangs`)
      checked(revision, fiber.pollUnsafe()!, report)
    }
    server.isHonest = true
    const pinging = yield* Effect.forkScoped(client.ping({ timeout: "5 seconds" }), { startImmediately: true })
    if (Revision.era(client.revision) === "session") server.ping()
    else server.lastAnswered = true
    yield* passed(() => pinging.pollUnsafe() !== undefined && (server.lastAnswered || server.isClosed))
    const exit = pinging.pollUnsafe()
    if (exit === undefined) return report(`${revision}: the last ping hangs`)
    if (server.isClosed) return checked(revision, exit, report)
    if (exit._tag === "Failure") {
      report(`${revision}: the last ping failed: ${Cause.pretty(exit.cause).slice(0, 1_000)}`)
    }
    if (!server.lastAnswered) report(`${revision}: the last ping of the server was not answered`)
  })

export const clientTarget: Target = {
  name: "client",
  run: (random, report) => {
    const revision = random.pick(Revision.all)
    return Effect.scoped(exchange(random, revision, report)).pipe(
      Effect.catchCause((cause) => Effect.sync(() => report(`died: ${Cause.pretty(cause).slice(0, 3_000)}`))),
      Effect.provide(Layer.merge(TestClock.layer(), Logger.layer([printableLogger(report)])))
    )
  }
}
