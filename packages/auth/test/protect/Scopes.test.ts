/** Scopes of tools, resources, resource templates and prompts, and inside of handlers. */
import { describe, expect, it } from "@effect/vitest"
import * as Scopes from "@skein/auth/Scopes"
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Catalog from "@skein/server/Catalog"
import type * as Http from "@skein/server/Http"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { bearer, challengeOf, metadata, posting, protect, type Reply, revisions, send, serve, Tokens } from "./kit.ts"

const secret = Resource.layer(Resource.make("tea://recipes/secret", { name: "secret" }), Effect.succeed("secret"))
const recipes = ResourceTemplate.layer(
  ResourceTemplate.make("tea://shops/{shop}", { name: "shop", variables: { shop: Schema.String } }),
  ({ shop }) => Effect.succeed(shop),
  { complete: { shop: ["north", "south"] } }
)
const greet = Prompt.layer(
  Prompt.make("greet", { arguments: { style: Schema.optional(Schema.String) } }),
  () => Effect.succeed("Hello"),
  { complete: { style: ["short", "long"] } }
)
const shop = Scopes.required(
  ["tea:write"],
  Tool.layer(
    Tool.make("brewAt", { input: { shop: Schema.String, reports: Schema.optional(Schema.Boolean) } }),
    ({ reports, shop }) =>
      Effect.gen(function*() {
        if (reports === true) yield* Progress.report({ progress: 1 })
        yield* Scopes.require(`tea:shop:${shop}`, "tea:brew")
        return String(yield* Scopes.has("tea:shop:north"))
      })
  )
)
const nested = Scopes.required(
  ["a", "b"],
  Scopes.required(["b", "c"], Tool.layer(Tool.make("nested"), () => Effect.succeed("nested")))
)
const hidden = Scopes.hiddenWithout(
  ["tea:admin"],
  Tool.layer(Tool.make("reset"), () => Effect.succeed("reset")),
  Prompt.layer(Prompt.make("audit"), () => Effect.succeed("audit"))
)
const change = Tool.layer(Tool.make("change"), () => Effect.as(Catalog.updated("tea://recipes/secret"), "changed"))
const definitions = [Scopes.required(["tea:secret"], secret, recipes, greet), shop, nested, hidden, change]

const start = (options?: NodeHttp.Options) =>
  Effect.gen(function*() {
    const tokens = new Tokens()
    tokens.add("ada", { scopes: ["x"] })
    tokens.add("all", { scopes: ["tea:secret", "tea:write", "tea:admin", "a", "b", "c"] })
    return { tokens, server: yield* serve(protect(tokens), definitions, options) }
  })

const refusedWith = (reply: Reply, scope: string, revision: string): void => {
  const data = { error: "insufficient_scope", scope, resource_metadata: metadata }
  expect(reply.json.error.data).toEqual(data)
  expect(reply.status).toBe(revision === "2024-11-05" ? 202 : 403)
  if (revision !== "2024-11-05") expect(challengeOf(reply)).toMatchObject(data)
}

describe.each(revisions)("%s", (revision, clientOf) => {
  it.live(`${revision} · insufficient scope of a tool, resource, template, prompt, subscription or completion: 403`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { server } = yield* start()
      const client = clientOf(server)
      yield* client.open(bearer("ada"))
      const ref = { type: "ref/prompt", name: "greet" }
      const template = { type: "ref/resource", uri: "tea://shops/{shop}" }
      const requests: ReadonlyArray<readonly [string, object]> = [
        ["resources/read", { uri: "tea://recipes/secret" }],
        ["resources/read", { uri: "tea://shops/north" }],
        ["prompts/get", { name: "greet" }],
        ["completion/complete", { ref, argument: { name: "style", value: "" } }],
        ["completion/complete", { ref: template, argument: { name: "shop", value: "" } }],
        ...(revision === "2026-07-28" ? [] : [["resources/subscribe", { uri: "tea://recipes/secret" }] as const])
      ]
      for (const [method, params] of requests) {
        refusedWith(yield* client.request(method, params, bearer("ada")), "tea:secret", revision)
        expect((yield* client.request(method, params, bearer("all"))).json.result).toBeDefined()
      }
      const { json } = yield* client.request("resources/read", { uri: "tea://recipes/secret" }, bearer("all"))
      if (revision === "2026-07-28") expect(json.result.cacheScope).toBe("private")
    })))

  it.live(`${revision} · lists show what needs a scope, and hide what is hidden without it`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { server } = yield* start()
      const client = clientOf(server)
      yield* client.open(bearer("ada"))
      const names = (token: string) =>
        Effect.map(
          client.request("tools/list", {}, bearer(token)),
          ({ json }) => json.result.tools.map(({ name }: { readonly name: string }) => name)
        )
      expect(yield* names("ada")).toEqual(["brewAt", "nested", "change"])
      expect(yield* names("all")).toEqual(["brewAt", "nested", "reset", "change"])
      const call = client.request("tools/call", { name: "reset", arguments: {} }, bearer("ada"))
      expect((yield* call).json.error).toEqual({ code: -32602, message: "Unknown tool: reset" })
      const { json } = yield* client.request("prompts/list", {}, bearer("ada"))
      expect(json.result.prompts.map(({ name }: { readonly name: string }) => name)).toEqual(["greet"])
    })))

  it.live(`${revision} · all scopes of an operation are in one challenge: those of nested lists, and those of the handler`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, tokens } = yield* start()
      tokens.add("some", { scopes: ["a", "b", "tea:write"] })
      const client = clientOf(server)
      yield* client.open(bearer("ada"))
      const call = (name: string, args: object, token: string) =>
        client.request("tools/call", { name, arguments: args, _meta: { progressToken: 1 } }, bearer(token))
      for (const token of ["ada", "some"]) refusedWith(yield* call("nested", {}, token), "a b c", revision)
      const scope = "tea:write tea:shop:south tea:brew"
      refusedWith(yield* call("brewAt", { shop: "south" }, "some"), scope, revision)
      // After a message there is no status: the same data is in the JSON-RPC error.
      const late = yield* call("brewAt", { shop: "south", reports: true }, "some")
      expect(late.json.error.data.scope).toBe(scope)
      expect(late.status).toBe(revision === "2024-11-05" ? 202 : 200)
      tokens.add("owner", { scopes: ["tea:write", "tea:shop:south", "tea:brew"] })
      expect((yield* call("brewAt", { shop: "south" }, "owner")).json.result.content[0].text).toBe("false")
    })))
})

it.live("2026-07-28 · subscriptions/listen leaves out the resources whose scopes the caller lacks", () =>
  Effect.scoped(Effect.gen(function*() {
    const { server } = yield* start()
    const listen = (token: string) =>
      send(server, {
        headers: {
          ...posting,
          ...bearer(token),
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "subscriptions/listen"
        },
        body: {
          jsonrpc: "2.0",
          id: 1,
          method: "subscriptions/listen",
          params: {
            notifications: { resourceSubscriptions: ["tea://recipes/secret"] },
            _meta: {
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientCapabilities": {}
            }
          }
        }
      }, (text) => text.includes("acknowledged"))
    const granted = (reply: Reply) => reply.json.params.notifications.resourceSubscriptions
    expect(granted(yield* listen("ada"))).toEqual([])
    expect(granted(yield* listen("all"))).toEqual(["tea://recipes/secret"])
  })))

it.live("a principal of the application's own has its scopes in `scopes`", () =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* serve(undefined, definitions, {
      principal: ({ headers }) => ({ id: "ada", scopes: String(headers["x-scopes"]).split(" ") })
    })
    const client = revisions.at(-1)![1](server)
    const call = (scopes: string) =>
      client.request("tools/call", { name: "nested", arguments: {} }, { "x-scopes": scopes })
    const refused = yield* call("a")
    expect(refused.status).toBe(403)
    expect(challengeOf(refused)).toMatchObject({ error: "insufficient_scope", scope: "a b c" })
    expect((yield* call("a b c")).status).toBe(200)
  })))

describe("Scopes", () => {
  it("rejects a scope that a challenge cannot have", () => {
    for (const scope of ["", "a b", "a\"b", "a\\b", "é"]) {
      expect(() => Scopes.required([scope])).toThrow("is not a scope")
      expect(() => Scopes.hiddenWithout([scope])).toThrow("is not a scope")
      expect(() => Scopes.implies({ a: [scope] })).toThrow("is not a scope")
    }
  })

  it("adds the implied scopes of all levels, also in a cycle", () => {
    const { expand } = Scopes.implies({ a: ["b"], b: ["c", "d"], d: ["a"] })
    expect(expand(["a"])).toEqual(["a", "b", "c", "d"])
    expect(expand(["x"])).toEqual(["x"])
    expect(expand([])).toEqual([])
    expect(Scopes.implies({}).expand(["constructor"])).toEqual(["constructor"])
  })
})

it.live("names its metadata in a challenge to a principal that the application has extended", () =>
  Effect.scoped(Effect.gen(function*() {
    const tokens = new Tokens()
    tokens.add("ada", { scopes: ["x"] })
    const extended = Effect.map(protect(tokens), (protection): Http.Protection => ({
      ...protection,
      identify: (request, answer) => {
        const found = Awaitable.settle(protection.identify(request, answer))
        const identified = Effect.isEffect(found) ? found : Effect.succeed(found)
        return Effect.map(identified, (principal) => principal && { ...principal, tenant: "north" })
      }
    }))
    const client = revisions.at(-1)![1](yield* serve(extended, definitions))
    const reply = yield* client.request("tools/call", { name: "nested", arguments: {} }, bearer("ada"))
    refusedWith(reply, "a b c", "2026-07-28")
  })))
