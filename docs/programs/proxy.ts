import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as Scopes from "@skein/auth/Scopes"
import * as UpstreamToken from "@skein/auth/UpstreamToken"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

// #region tool
class ApiError extends Schema.TaggedError<ApiError>()("ApiError", { message: Schema.String }) {}

const api = process.env["API_URL"] ?? "https://api.github.com"

/** Calls the API of the provider as the caller. */
const get = (path: string) =>
  Effect.gen(function*() {
    const token = yield* UpstreamToken.current
    const headers = { authorization: `Bearer ${Redacted.value(token)}` }
    const reply = yield* Effect.tryPromise({
      try: () => fetch(`${api}${path}`, { headers }),
      catch: () => new ApiError({ message: "The API does not answer. Try again later" })
    })
    // The person has removed the access there. The next request of the client gets 401, and the person signs in again.
    if (reply.status === 401) yield* UpstreamToken.refused(token)
    if (!reply.ok) return yield* new ApiError({ message: `The API answered with status ${reply.status}` })
    return yield* Effect.promise(() =>
      reply.json() as Promise<{ readonly login: string; readonly public_repos: number }>
    )
  })

const whoami = Tool.layer(
  Tool.make("whoami", { description: "The account of the caller." }),
  // If the sign-in has ended, the client signs its user in, and calls again.
  () => UpstreamToken.orSignIn(Effect.map(get("/user"), ({ login }) => `You are ${login}`))
)
// #endregion

/** Why a step got no answer. Its outcome is stored, so it is a schema. */
class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", { reason: Schema.String, message: Schema.String }) {}

const count = (week: number) =>
  Step.run(`week ${week}`, {
    success: Schema.Int,
    error: NoAnswer,
    // An outage is not a reason to stop: only the person can repair a sign-in.
    retry: Schedule.spaced("1 hour").pipe(
      Schedule.setInputType<NoAnswer>(),
      Schedule.while(({ input }) => input.reason !== "SignInRequired")
    )
  }, () =>
    // The token is requested inside of the step, and is not its outcome: it would be stored, and expire.
    get("/user").pipe(
      Effect.map(({ public_repos }) => public_repos),
      Effect.mapError((error) =>
        new NoAnswer({
          reason: error._tag === "UpstreamTokenError" ? error.reason._tag : error._tag,
          message: error.message
        })
      )
    ))

const watch = Task.layer(
  Task.make("watch", { description: "Reports new repositories for a month.", ttl: "40 days" }),
  () =>
    Effect.gen(function*() {
      const counts = [yield* count(0)]
      for (let week = 1; week <= 4; week++) {
        yield* Step.sleep(`until week ${week}`, "7 days")
        counts.push(yield* count(week))
      }
      return `Repositories, week by week: ${counts.join(", ")}`
    })
)

// #region server
const Server = McpServer.layer(
  { name: "repositories", version: "1.0.0" },
  Scopes.required(["profile:read"], whoami),
  Scopes.required(["profile:read"], watch),
  Tasks.layer()
).pipe(Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))

/** The server behind its proxy, for the accounts of an upstream. */
export const serve = <E, R>(upstream: Effect.Effect<Proxy.UpstreamOptions, E, R>) =>
  Layer.unwrap(Effect.gen(function*() {
    const keys = yield* Config.Redacted("PROXY_KEYS")
    const resource = yield* Config.String("RESOURCE")
    const port = yield* Config.withDefault(Config.Int("PORT"), 3000)
    const { layer, protection } = yield* Proxy.make({
      resource,
      serverName: "Repositories",
      scopes: ["profile:read"],
      keys: Redacted.value(keys).split(",").map((key) => Redacted.make(key.trim())),
      upstream: yield* upstream
    })
    const listening = NodeHttp.layer({ port, allowedHosts: [new URL(resource).hostname], protection })
    return listening.pipe(Layer.provide(Server), Layer.provide(layer))
  }))
// #endregion

// #region stores
export const OneInstance = Layer.provide(ProxyStore.layerSql, SqliteClient.layer({ filename: "proxy.db" }))

export const SeveralInstances = ProxyStore.layerSql.pipe(
  Layer.provide(Layer.unwrap(Effect.map(Config.Redacted("DATABASE_URL"), (url) => PgClient.layer({ url }))))
)
// #endregion
