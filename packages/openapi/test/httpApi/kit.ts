/** An application of `effect/http-api` for tests, and clients of its endpoints as tools. */
import type { Principal } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type * as Catalog from "@skein/server/Catalog"
import * as HttpApiTools from "@skein/openapi/HttpApiTools"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Client, type Json } from "../../../server/test/kit.ts"

export class Pet extends Schema.Class<Pet>("Pet")({
  id: Schema.Int,
  name: Schema.String.annotate({ description: "What it is called" }),
  born: Schema.Date
}) {}

class NoSuchPet extends Schema.TaggedError<NoSuchPet>()("NoSuchPet", { id: Schema.Int }, { httpApiStatus: 404 }) {}

export class User extends Context.Service<User, { readonly name: string }>()("test/User") {}

class Refused extends Schema.TaggedError<Refused>()("Refused", {}, { httpApiStatus: 401 }) {}

class SignedIn extends HttpApiMiddleware.Service<SignedIn, { provides: User }>()("test/SignedIn", {
  error: Refused,
  security: { bearer: HttpApiSecurity.bearer }
}) {}

class Keyed extends HttpApiMiddleware.Service<Keyed>()("test/Keyed", {
  error: Refused,
  security: { key: HttpApiSecurity.apiKey({ key: "X-Key", in: "header" }) }
}) {}

const pets = HttpApiGroup.make("pets").add(
  HttpApiEndpoint.get("find", "/pets/:id", {
    params: { id: Schema.Int.annotate({ description: "The number of the pet" }) },
    success: Pet,
    error: NoSuchPet
  }).annotate(OpenApi.Summary, "Find a pet").annotate(OpenApi.Description, "Returns one pet"),
  HttpApiEndpoint.get("list", "/pets", {
    query: {
      limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))),
      tame: Schema.optionalKey(Schema.Boolean),
      since: Schema.optionalKey(Schema.Date),
      kinds: Schema.optionalKey(Schema.Array(Schema.String))
    },
    headers: { "x-region": Schema.optionalKey(Schema.String) },
    success: Schema.Unknown
  }),
  HttpApiEndpoint.put("replace", "/pets/:id", {
    params: { id: Schema.Int },
    query: { name: Schema.optionalKey(Schema.String) },
    payload: Pet,
    success: Pet
  }),
  HttpApiEndpoint.delete("remove", "/pets/:id", { params: { id: Schema.Int } }),
  HttpApiEndpoint.post("rename", "/names", {
    payload: Schema.Struct({ name: Schema.NonEmptyString, tame: Schema.Boolean }).pipe(
      HttpApiSchema.asFormUrlEncoded()
    ),
    success: Schema.String.pipe(HttpApiSchema.asText())
  }).annotate(HttpApiTools.Hints, { idempotentHint: true, destructiveHint: false }),
  HttpApiEndpoint.post("photo", "/photos", {
    payload: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array()),
    success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: "image/png" }))
  }),
  HttpApiEndpoint.post("sum", "/sum", { payload: Schema.Array(Schema.Finite), success: Schema.Finite }),
  HttpApiEndpoint.get("note", "/pets/:name/note", {
    params: { name: Schema.String },
    headers: {
      "x-color": Schema.optionalKey(Schema.String),
      "x-tenant": Schema.optionalKey(Schema.String),
      authorization: Schema.optionalKey(Schema.String)
    },
    success: Schema.Array(Schema.String)
  }),
  HttpApiEndpoint.get("broken", "/broken", { success: Schema.String }),
  HttpApiEndpoint.get("large", "/large", { success: Schema.String.pipe(HttpApiSchema.asText()) }),
  HttpApiEndpoint.get("slow", "/slow"),
  HttpApiEndpoint.get("other", "/other", { success: Pet }),
  HttpApiEndpoint.get("watch", "/watch", { success: HttpApiSchema.StreamUint8Array() }),
  HttpApiEndpoint.post("upload", "/upload", {
    payload: Schema.Struct({ note: Schema.String }).pipe(HttpApiSchema.asMultipart())
  }),
  HttpApiEndpoint.get("keyed", "/keyed").middleware(Keyed),
  HttpApiEndpoint.get("hidden", "/hidden").annotate(OpenApi.Exclude, true)
)

const me = HttpApiGroup.make("me", { topLevel: true }).add(
  HttpApiEndpoint.get("whoami", "/me", { success: Schema.String }).annotate(OpenApi.Identifier, "who_am_i")
).middleware(SignedIn)

export const Api = HttpApi.make("shop").add(pets).add(me)

/** Receives the events of the tests' handlers. */
export interface Probe {
  readonly started?: Effect.Effect<unknown> | undefined
  readonly interrupted?: Effect.Effect<unknown> | undefined
}

const rex = (id: number) => new Pet({ id, name: "Rex", born: new Date("2020-01-02T00:00:00.000Z") })

const PetsLive = (probe: Probe) =>
  HttpApiBuilder.group(Api, "pets", (handlers) =>
    handlers
      .handle(
        "find",
        Effect.fn("Pets.find")(function*({ params: { id } }) {
          return id > 99 ? yield* new NoSuchPet({ id }) : rex(id)
        })
      )
      .handle(
        "list",
        ({ headers, query }) =>
          Effect.succeed(JSON.parse(JSON.stringify({ ...query, region: headers["x-region"] ?? null })))
      )
      .handle(
        "replace",
        ({ params, payload, query }) =>
          Effect.succeed(new Pet({ ...payload, id: params.id, name: query.name ?? payload.name }))
      )
      .handle("remove", () => Effect.void)
      .handle("rename", ({ payload }) => Effect.succeed(`${payload.name} is ${payload.tame ? "tame" : "wild"}`))
      .handle("photo", ({ payload }) => Effect.succeed(payload))
      .handle("sum", ({ payload }) => Effect.succeed(payload.reduce((sum, each) => sum + each, 0)))
      .handle(
        "note",
        ({ headers, params }) =>
          Effect.succeed([params.name, headers["x-color"] ?? "", headers["x-tenant"] ?? headers.authorization ?? ""])
      )
      .handle("broken", () => Effect.die(new Error("the secret cause")))
      .handle("large", () => Effect.succeed("x".repeat(5_000)))
      .handle("slow", () =>
        Effect.andThen(probe.started ?? Effect.void, Effect.never).pipe(
          Effect.onInterrupt(() => probe.interrupted ?? Effect.void)
        ))
      .handleRaw("other", () => Effect.succeed(HttpServerResponse.text("not a pet")))
      .handle("watch", () => Effect.succeed(Stream.empty))
      .handle("upload", () => Effect.void)
      .handle("keyed", () => Effect.void)
      .handle("hidden", () => Effect.void))

const MeLive = HttpApiBuilder.group(
  Api,
  "me",
  (handlers) => handlers.handle("whoami", () => Effect.map(User, ({ name }) => name))
)

const SignedInLive = Layer.succeed(SignedIn, {
  bearer: (endpoint, { credential }) =>
    Effect.gen(function*() {
      const principal = yield* HttpRoutes.CurrentPrincipal
      const name = principal?.id ?? Redacted.value(credential)
      if (name === "") return yield* new Refused()
      return yield* Effect.provideService(endpoint, User, { name })
    })
})

const KeyedLive = Layer.succeed(Keyed, { key: () => Effect.fail(new Refused()) })

/** The paths that the middleware of the router has seen. */
export const routed: Array<string> = []

const Seen = HttpRouter.middleware(
  (route) => Effect.tap(route, () => Effect.map(HttpServerRequest, ({ url }) => routed.push(url))),
  { global: true }
)

/** The application, without a server. */
export const application = (probe: Probe = {}) =>
  Layer.merge(HttpApiBuilder.layer(Api), Seen).pipe(
    Layer.provide([PetsLive(probe), MeLive]),
    Layer.provide([SignedInLive, KeyedLive]),
    Layer.provideMerge(HttpRouter.layer),
    Layer.provide(HttpServer.layerServices)
  )

/** A server of tools, within the application. */
export const within = <E>(
  tools: Layer.Layer<never, E, HttpRouter.HttpRouter | Catalog.Catalog>,
  probe?: Probe
) => McpServer.layer({ name: "shop", version: "1.0.0" }, tools).pipe(Layer.provide(application(probe)))

/** Connects a client whose requests have a principal and headers, as over HTTP. */
export const connect = <E>(
  server: ReturnType<typeof within<E>>,
  caller: { readonly principal?: Principal; readonly headers?: Readonly<Record<string, string>> } = {}
) =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Effect.orDie(Layer.build(server)), McpServer.McpServer)
    const [near, far] = yield* InMemoryTransport.make()
    const origin = { principal: caller.principal, header: (name: string) => caller.headers?.[name] }
    const peer = yield* serve({
      open: (receiver) =>
        near.open({
          message: (inbound) => receiver.message(inbound, origin),
          end: (end) => receiver.end(end)
        }),
      send: (message) => near.send(message),
      drained: near.drained,
      close: near.close
    })
    return new Client(far, peer, "2026-07-28")
  })

/** Calls a tool, and returns its result. */
export const call = (client: Client, name: string, args: Json = {}): Effect.Effect<Json> =>
  client.result("tools/call", { name, arguments: args })
