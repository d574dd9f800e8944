import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as AuditLog from "@skein/server/AuditLog"
import * as Catalog from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import * as Elicitation from "@skein/server/Elicitation"
import * as Extension from "@skein/server/Extension"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as naming from "../../src/internal/composition/naming.ts"
import * as input from "../input/kit.ts"
import * as kit from "../kit.ts"
import { acknowledged, pass, updated } from "../subscriptions/kit.ts"

const eras = ["2025-11-25", "2026-07-28"] as const

const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed(name))

/** One definition of each kind, and tools that change them. */
const weather = [
  Tool.layer(Tool.make("forecast", { input: { city: Schema.String } }), ({ city }) =>
    Effect.succeed([
      Content.text(`Sun in ${city}`),
      Content.resourceLink({ uri: "data://cities", name: "cities" }),
      Content.resourceLink({ uri: "https://example.com/", name: "elsewhere" })
    ])),
  Tool.layer(
    Tool.make("touch", { input: { uri: Schema.String } }),
    ({ uri }) => Effect.as(Catalog.updated(uri), "touched")
  ),
  Tool.layer(
    Tool.make("grow"),
    () => Effect.as(Catalog.persistent(Tool.add(Tool.make("radar"), () => Effect.succeed("rain"))), "grown")
  ),
  Tool.layer(Tool.make("hide"), () => Effect.as(Catalog.setEnabled("tool", "forecast", false), "hidden")),
  Resource.layer(Resource.make("data://cities"), Effect.succeed("Delft")),
  ResourceTemplate.layer(
    ResourceTemplate.make("city://{name}/today", { name: "city" }),
    ({ name }, uri) => Effect.succeed([Content.resourceContents(uri, `Sun in ${name}`)]),
    { complete: { name: ["Delft", "Dakar"] } }
  ),
  Prompt.layer(
    Prompt.make("plan", { arguments: { city: Schema.String } }),
    ({ city }) =>
      Effect.succeed([Prompt.user(city), Prompt.user(Content.resourceLink({ uri: "data://cities", name: "cities" }))]),
    { complete: { city: ["Delft", "Dakar"] } }
  )
] as const

const names = (entries: ReadonlyArray<kit.Json>, key = "name") => entries.map((entry) => entry[key])

describe("a mounted part", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · is listed, called, read and completed under prefixed names and URIs`, () =>
      Effect.gen(function*() {
        const server = kit.server(tool("zoo"), McpServer.mount("weather", ...weather), tool("ant"))
        const client = yield* kit.client(server as kit.Server, revision)
        const { tools } = yield* client.result("tools/list")
        expect(names(tools)).toEqual([
          "zoo",
          "weather_forecast",
          "weather_touch",
          "weather_grow",
          "weather_hide",
          "ant"
        ])
        expect(names((yield* client.result("resources/list")).resources, "uri")).toEqual(["data://weather/cities"])
        const { resourceTemplates } = yield* client.result("resources/templates/list")
        expect(names(resourceTemplates, "uriTemplate")).toEqual(["city://weather/{name}/today"])
        expect(names((yield* client.result("prompts/list")).prompts)).toEqual(["weather_plan"])

        const { content } = yield* client.call("weather_forecast", { city: "Delft" })
        expect(content[0].text).toBe("Sun in Delft")
        if (revision >= "2025-06-18") expect(content[1].uri).toBe("data://weather/cities")
        if (revision >= "2025-06-18") expect(content[2].uri).toBe("https://example.com/")
        const read = (uri: string) => client.result("resources/read", { uri })
        expect((yield* read("data://weather/cities")).contents).toMatchObject([
          { uri: "data://weather/cities", text: "Delft" }
        ])
        expect((yield* read("city://weather/Delft/today")).contents).toMatchObject([
          { uri: "city://weather/Delft/today", text: "Sun in Delft" }
        ])
        for (const uri of ["data://cities", "city://Delft/today"]) {
          expect((yield* client.error("resources/read", { uri })).message).toBe("Resource not found")
        }
        expect((yield* client.error("tools/call", { name: "forecast" })).code).toBe(-32602)
        const { messages } = yield* client.result("prompts/get", { name: "weather_plan", arguments: { city: "Delft" } })
        if (revision >= "2025-06-18") expect(messages[1].content.uri).toBe("data://weather/cities")
        const complete = (ref: kit.Json, name: string) =>
          Effect.map(
            client.result("completion/complete", { ref, argument: { name, value: "De" } }),
            ({ completion }) => completion.values
          )
        expect(yield* complete({ type: "ref/prompt", name: "weather_plan" }, "city")).toEqual(["Delft"])
        expect(yield* complete({ type: "ref/resource", uri: "city://weather/{name}/today" }, "name")).toEqual(["Delft"])
      }))
  }

  it.effect("2025-11-25 · notifies subscribers of the prefixed URI of an update under the part's own URI", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(McpServer.mount("weather", ...weather)) as kit.Server, "2025-11-25")
      yield* client.result("resources/subscribe", { uri: "data://weather/cities" })
      yield* client.result("resources/subscribe", { uri: "city://weather/Delft/today" })
      for (const uri of ["data://cities", "city://Delft/today", "city://Dakar/today"]) {
        yield* client.call("weather_touch", { uri })
      }
      yield* kit.settle
      expect(client.notices(updated).map(({ params }) => params.uri)).toEqual([
        "data://weather/cities",
        "city://weather/Delft/today"
      ])
      yield* client.result("resources/unsubscribe", { uri: "data://weather/cities" })
      yield* client.call("weather_touch", { uri: "data://cities" })
      yield* kit.settle
      expect(client.notices(updated).length).toBe(2)
    }))

  it.effect("2026-07-28 · notifies listeners of the prefixed URI of an update under the part's own URI", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(McpServer.mount("weather", ...weather)) as kit.Server, "2026-07-28")
      client.send("subscriptions/listen", {
        notifications: { toolsListChanged: true, resourceSubscriptions: ["data://weather/cities", "data://cities"] }
      })
      yield* kit.settle
      expect(client.notices(acknowledged)[0].params.notifications.resourceSubscriptions).toEqual([
        "data://weather/cities"
      ])
      yield* client.call("weather_touch", { uri: "data://cities" })
      yield* kit.settle
      expect(client.notices(updated).map(({ params }) => params.uri)).toEqual(["data://weather/cities"])
    }))

  for (const revision of eras) {
    it.effect(`${revision} · changes its entries under its own names while the server runs`, () =>
      Effect.gen(function*() {
        const server = kit.server(McpServer.mount("weather", ...weather), tool("ant")) as kit.Server
        const client = yield* kit.client(server, revision)
        if (revision === "2026-07-28") {
          client.send("subscriptions/listen", { notifications: { toolsListChanged: true } })
        }
        yield* client.call("weather_grow")
        yield* client.call("weather_hide")
        expect(names((yield* client.result("tools/list")).tools)).toEqual([
          "weather_touch",
          "weather_grow",
          "weather_hide",
          "weather_radar",
          "ant"
        ])
        expect((yield* client.call("weather_radar")).content[0].text).toBe("rain")
        yield* pass("50 millis")
        expect(client.notices("notifications/tools/list_changed").length).toBe(1)
        // The name is taken in the part.
        expect((yield* client.call("weather_grow")).content[0].text).toContain("\"radar\" exists already")
      }))

    it.effect(`${revision} · may be in another part`, () =>
      Effect.gen(function*() {
        const server = kit.server(
          McpServer.mount("a", tool("x"), McpServer.mount("b", ...weather), tool("y"))
        ) as kit.Server
        const client = yield* kit.client(server, revision)
        expect(names((yield* client.result("tools/list")).tools)).toEqual([
          "a_x",
          "a_b_forecast",
          "a_b_touch",
          "a_b_grow",
          "a_b_hide",
          "a_y"
        ])
        const uri = "data://a/b/cities"
        expect((yield* client.result("resources/read", { uri })).contents[0]).toMatchObject({ uri, text: "Delft" })
        expect((yield* client.call("a_b_forecast", { city: "Delft" })).content[1].uri).toBe(uri)
        if (revision === "2025-11-25") yield* client.result("resources/subscribe", { uri })
        else client.send("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } })
        yield* kit.settle
        yield* client.call("a_b_touch", { uri: "data://cities" })
        yield* kit.settle
        expect(client.notices(updated).map(({ params }) => params.uri)).toEqual([uri])
      }))

    it.effect(`${revision} · keeps its names without a prefix, and has those that functions make`, () =>
      Effect.gen(function*() {
        for (const at of [undefined, "", {}]) {
          const client = yield* kit.client(kit.server(McpServer.mount(at, ...weather)) as kit.Server, revision)
          expect((yield* client.call("forecast", { city: "Delft" })).content[1].uri).toBe("data://cities")
          expect((yield* client.result("resources/read", { uri: "city://Delft/today" })).contents[0].uri).toBe(
            "city://Delft/today"
          )
        }
        const client = yield* kit.client(
          kit.server(
            McpServer.mount({ prefix: "w", separator: ".", uri: false }, ...weather),
            McpServer.mount({
              name: (name, kind) => `${kind}-${name}`,
              uri: {
                add: (uri) => `x+${uri}`,
                remove: (uri) => uri.startsWith("x+") ? uri.slice(2) : undefined
              }
            }, ...weather)
          ) as kit.Server,
          revision
        )
        expect((yield* client.call("w.forecast", { city: "Delft" })).content[1].uri).toBe("data://cities")
        expect((yield* client.call("tool-forecast", { city: "Delft" })).content[1].uri).toBe("x+data://cities")
        expect(names((yield* client.result("prompts/list")).prompts)).toEqual(["w.plan", "prompt-plan"])
        const { contents } = yield* client.result("resources/read", { uri: "x+city://Delft/today" })
        expect(contents[0]).toMatchObject({ uri: "x+city://Delft/today", text: "Sun in Delft" })
      }))

    it.effect(`${revision} · runs its middleware around its own entries, with its own names`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const noting = (who: string) =>
          Middleware.layer((next) => (request) => {
            seen.push(`${who} ${request.method} ${request.target ?? JSON.stringify(request.params?.["ref"] ?? "-")}`)
            return next(request)
          })
        const server = kit.server(
          McpServer.mount("weather", noting("inner"), ...weather, McpServer.mount("sea", noting("deep"), tool("tide"))),
          noting("outer"),
          tool("ant")
        ) as kit.Server
        const client = yield* kit.client(server, revision)
        const of = (effect: Effect.Effect<unknown>) =>
          Effect.map(Effect.andThen(Effect.sync(() => seen.splice(0)), effect), () => seen.splice(0))
        expect(yield* of(client.result("tools/list"))).toEqual(["outer tools/list \"-\""])
        expect(yield* of(client.call("ant"))).toEqual(["outer tools/call ant"])
        expect(yield* of(client.call("weather_forecast", { city: "x" }))).toEqual([
          "outer tools/call weather_forecast",
          "inner tools/call forecast"
        ])
        expect(yield* of(client.call("weather_sea_tide"))).toEqual([
          "outer tools/call weather_sea_tide",
          "inner tools/call sea_tide",
          "deep tools/call tide"
        ])
        expect(yield* of(client.result("resources/read", { uri: "city://weather/Delft/today" }))).toEqual([
          "outer resources/read city://weather/Delft/today",
          "inner resources/read city://Delft/today"
        ])
        expect(
          yield* of(client.result("completion/complete", {
            ref: { type: "ref/prompt", name: "weather_plan" },
            argument: { name: "city", value: "" }
          }))
        ).toEqual([
          "outer completion/complete {\"type\":\"ref/prompt\",\"name\":\"weather_plan\"}",
          "inner completion/complete {\"type\":\"ref/prompt\",\"name\":\"plan\"}"
        ])
      }))

    it.effect(`${revision} · has its own middleware of operations, which may change arguments`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const client = yield* kit.client(
          kit.server(McpServer.mount(
            "weather",
            Middleware.layer((next) => (request) =>
              request.method === "tools/call"
                ? next(request.with({ params: { ...request.params, arguments: { city: "Delft" } } }))
                : next(request)
            ),
            Middleware.callTool((call, next) => {
              seen.push(`${call.name} ${call.request.target} ${call.arguments["city"]}`)
              return next({ city: `${call.arguments["city"]}!` })
            }),
            Middleware.readResource((read, next) => {
              seen.push(`${read.uri} ${read.request.target}`)
              return next()
            }),
            Middleware.getPrompt((prompt, next) => {
              seen.push(prompt.name)
              return next({ city: "Dakar" })
            }),
            ...weather
          )) as kit.Server,
          revision
        )
        expect((yield* client.call("weather_forecast", { city: "x" })).content[0].text).toBe("Sun in Delft!")
        yield* client.result("resources/read", { uri: "city://weather/Delft/today" })
        const { messages } = yield* client.result("prompts/get", { name: "weather_plan", arguments: { city: "x" } })
        expect(messages[0].content.text).toBe("Dakar")
        expect(seen).toEqual(["forecast forecast Delft", "city://Delft/today city://Delft/today", "plan"])
      }))

    it.effect(`${revision} · asks the client for input from inside of its middleware`, () =>
      Effect.gen(function*() {
        const order = Tool.layer(Tool.make("order"), () =>
          Effect.map(
            Elicitation.form("How many?", { count: Schema.Int }),
            (answer) => answer.action === "accept" ? `${answer.content.count} ordered` : "declined"
          ))
        const server = kit.server(McpServer.mount("shop", AuditLog.layer({ sink: () => Effect.void }), order))
        const client = yield* input.client(server, { revision, answer: () => input.accept({ count: 3 }) })
        expect(yield* client.call("shop_order")).toBe("3 ordered")
      }))
  }

  it.effect("may be mounted twice, and shares the services of the server", () =>
    Effect.gen(function*() {
      let built = 0
      class Db extends Context.Service<Db, number>()("test/Db") {
        static readonly layer = Layer.sync(Db, () => ++built)
      }
      const part = Tool.layer(Tool.make("id"), () => Effect.map(Db, String)).pipe(Layer.provide(Db.layer))
      const client = yield* kit.client(kit.server(part, McpServer.mount("a", part), McpServer.mount("b", part)))
      expect(names((yield* client.result("tools/list")).tools)).toEqual(["id", "a_id", "b_id"])
      for (const name of ["id", "a_id", "b_id"]) expect((yield* client.call(name)).content[0].text).toBe("1")
      expect(built).toBe(1)
    }))

  it.effect("fails the server with DuplicateName if its name is taken, while the server runs, too", () =>
    Effect.gen(function*() {
      const error = yield* kit.failure(kit.server(tool("a_x"), McpServer.mount("a", tool("x"))) as kit.Server)
      expect(error).toMatchObject({ reason: { _tag: "DuplicateName" }, kind: "tool", definition: "a_x" })
      const add = Tool.layer(
        Tool.make("add"),
        () => Effect.as(Catalog.persistent(Tool.add(Tool.make("y"), () => Effect.succeed(""))), "added")
      )
      const client = yield* kit.client(kit.server(tool("a_y"), McpServer.mount("a", add)))
      expect(yield* client.call("a_add")).toMatchObject({
        isError: true,
        content: [{ text: "A tool with the name \"a_y\" exists already" }]
      })
      expect(names((yield* client.result("tools/list")).tools)).toEqual(["a_y", "a_add"])
    }))

  it.effect("fails the server for a URI that is not valid with the prefix", () =>
    Effect.gen(function*() {
      const resource = Resource.layer(Resource.make("http://[::1]/"), Effect.succeed(""))
      expect(yield* kit.failure(kit.server(McpServer.mount("a", resource)) as kit.Server)).toMatchObject({
        reason: { _tag: "InvalidUri" },
        definition: "http://a/[::1]/"
      })
      const template = ResourceTemplate.layer(
        ResourceTemplate.make("{+uri}", { name: "any" }),
        () => Effect.succeed("")
      )
      expect(yield* kit.failure(kit.server(McpServer.mount("a", template)) as kit.Server)).toMatchObject({
        reason: { _tag: "InvalidUriTemplate" },
        definition: "a/{+uri}"
      })
    }))

  it.effect("has the visibility, the guards and the state of the views that it is in", () =>
    Effect.gen(function*() {
      const isKit = ({ info }: { readonly info: kit.Json }) => info?.["name"] === "kit"
      const client = yield* kit.client(kit.server(
        Catalog.visibleTo((caller) => !isKit(caller as never), McpServer.mount("no", ...weather)),
        Catalog.disabled(McpServer.mount("off", ...weather)),
        McpServer.mount("in", Catalog.disabled(tool("off")), Catalog.visibleTo(() => false, tool("no")), tool("on"))
      ) as kit.Server)
      expect(names((yield* client.result("tools/list")).tools)).toEqual(["in_on"])
      for (const name of ["no_forecast", "off_forecast", "in_off", "in_no"]) {
        expect((yield* client.error("tools/call", { name })).message).toBe(`Unknown tool: ${name}`)
      }
    }))

  it.effect("has its own extensions around the calls of its own tools", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const extension = Extension.layer({
        name: "test",
        capabilities: () => ({ extensions: { test: {} } }),
        call: (call, next) => {
          seen.push(`${call.params.name} ${call.tool.definition.name}`)
          return next(call)
        }
      })
      const client = yield* kit.client(kit.server(McpServer.mount("a", extension, tool("x")), tool("y")))
      yield* client.call("a_x")
      yield* client.call("y")
      expect(seen).toEqual(["x x"])
      expect((yield* client.result("server/discover")).capabilities.extensions).toEqual({ test: {} })
    }))
})

describe("a mounted server", () => {
  class Name extends Context.Service<Name, string>()("test/Name") {}

  const inner = (seen: Array<string> = []) =>
    McpServer.layer(
      { name: "inner", version: "1.0.0" },
      Middleware.layer((next) => (request) => {
        seen.push(`${request.method} ${request.target}`)
        return Effect.provideService(next(request), Name, "wrapped")
      }),
      ...weather,
      Tool.layer(Tool.make("who"), () => Effect.map(Name, String)).pipe(Layer.provide(Layer.succeed(Name, "inner")))
    )

  for (const revision of eras) {
    it.effect(`${revision} · has its entries, its middleware and its changes under prefixed names`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const server = kit.server(tool("zoo"), McpServer.mount("w", inner(seen)), tool("ant")) as kit.Server
        const client = yield* kit.client(server, revision)
        expect(names((yield* client.result("tools/list")).tools)).toEqual([
          "zoo",
          "w_forecast",
          "w_touch",
          "w_grow",
          "w_hide",
          "w_who",
          "ant"
        ])
        expect((yield* client.call("w_forecast", { city: "Delft" })).content[1].uri).toBe("data://w/cities")
        expect(seen).toEqual(["tools/call forecast"])
        const uri = "city://w/Delft/today"
        if (revision === "2025-11-25") yield* client.result("resources/subscribe", { uri })
        else client.send("subscriptions/listen", { notifications: { resourceSubscriptions: [uri] } })
        yield* kit.settle
        yield* client.call("w_touch", { uri: "city://Delft/today" })
        yield* kit.settle
        expect(client.notices(updated).map(({ params }) => params.uri)).toEqual([uri])
        yield* client.call("w_grow")
        yield* client.call("w_hide")
        expect(names((yield* client.result("tools/list")).tools)).toEqual([
          "zoo",
          "w_touch",
          "w_grow",
          "w_hide",
          "w_who",
          "w_radar",
          "ant"
        ])
      }))
  }

  it.effect("is a defect if it has another extension with a name of which a server has one only", () =>
    Effect.gen(function*() {
      const single = (isSingle: boolean) => Extension.layer({ name: "one", isSingle })
      const withOne = (isSingle: boolean) => McpServer.layer({ name: "inner", version: "1.0.0" }, single(isSingle))
      const message = (...definitions: ReadonlyArray<McpServer.Definitions>) =>
        Effect.map(
          Effect.flip(Effect.sandbox(Layer.build(kit.server(...definitions) as kit.Server))),
          (cause) => String(Cause.squash(cause))
        )
      const twice = "The extension one is twice in one server"
      expect(yield* message(single(true), single(true))).toContain(twice)
      expect(yield* message(single(true), McpServer.mount("a", withOne(true)))).toContain(twice)
      expect(yield* message(McpServer.mount("a", withOne(true)), single(true))).toContain(twice)
      expect(yield* message(McpServer.mount("a", single(true)), McpServer.mount("b", withOne(true)))).toContain(twice)
      yield* Layer.build(kit.server(single(false), McpServer.mount("a", withOne(false))) as kit.Server)
      const one = withOne(true)
      yield* Layer.build(kit.server(McpServer.mount("a", one), McpServer.mount("b", one)) as kit.Server)
    }))

  it.effect("fails the server if a name is taken, and fails its own additions later", () =>
    Effect.gen(function*() {
      const error = yield* kit.failure(kit.server(tool("w_who"), McpServer.mount("w", inner())) as kit.Server)
      expect(error).toMatchObject({ reason: { _tag: "DuplicateName" }, definition: "w_who" })
      const client = yield* kit.client(kit.server(tool("w_radar"), McpServer.mount("w", inner())) as kit.Server)
      expect((yield* client.call("w_grow")).content[0].text).toBe("A tool with the name \"w_radar\" exists already")
    }))

  it.effect("has the definitions that the server around it, or another part, has too", () =>
    Effect.gen(function*() {
      let builds = 0
      const Shared = Layer.effect(Name, Effect.sync(() => `${++builds}`))
      const who = Tool.layer(Tool.make("who"), () => Effect.map(Name, String)).pipe(Layer.provide(Shared))
      const x = tool("x")
      const part = (...definitions: ReadonlyArray<McpServer.Definitions>) =>
        McpServer.layer({ name: "part", version: "1.0.0" }, ...definitions)
      const one = part(x, who)
      // A mounted server finds the services that were built before it in the server around it. Its own are its own.
      const cases: ReadonlyArray<readonly [ReadonlyArray<McpServer.Definitions>, ReadonlyArray<string>, number]> = [
        [[x, who, McpServer.mount("p", one)], ["x", "who", "p_x", "p_who"], 1],
        [[McpServer.mount("p", one), x, who], ["p_x", "p_who", "x", "who"], 2],
        [[McpServer.mount("q", x, who), McpServer.mount("p", one)], ["q_x", "q_who", "p_x", "p_who"], 1],
        [[McpServer.mount("p", one), McpServer.mount("q", x, who)], ["p_x", "p_who", "q_x", "q_who"], 2],
        [[McpServer.mount("p", one), McpServer.mount("q", part(who, x))], ["p_x", "p_who", "q_who", "q_x"], 2],
        [
          [x, who, McpServer.mount("q", part(x, who, McpServer.mount("p", one)))],
          ["x", "who", "q_x", "q_who", "q_p_x", "q_p_who"],
          1
        ]
      ]
      for (const [definitions, expected, expectedBuilds] of cases) {
        builds = 0
        const client = yield* kit.client(kit.server(...definitions) as kit.Server)
        expect(names((yield* client.result("tools/list")).tools)).toEqual(expected)
        for (const name of expected) expect((yield* client.call(name)).isError).toBeUndefined()
        expect(builds).toBe(expectedBuilds)
      }
    }))

  it.effect("may be mounted in two places, and be served itself", () =>
    Effect.gen(function*() {
      const one = inner()
      const outer = kit.server(McpServer.mount("a", one), McpServer.mount("b", one)) as kit.Server
      const client = yield* kit.client(outer)
      yield* client.call("a_grow")
      expect((yield* client.call("b_radar")).content[0].text).toBe("rain")
      const own = yield* kit.client(one as kit.Server)
      expect((yield* own.call("forecast", { city: "Delft" })).content[1].uri).toBe("data://cities")
    }))
})

describe("the prefix of a URI", () => {
  it.effect.prop("is removed again, whatever the URI", [
    Schema.String,
    Schema.Literals(["x:", "x://", "file:///", "x+y.z-1:"])
  ], ([
    rest,
    scheme
  ]) =>
    Effect.sync(() => {
      const { ownUri, uri } = naming.make("a.b")
      expect(ownUri(uri(scheme + rest))).toBe(scheme + rest)
    }))

  it("is inserted after the scheme", () => {
    const { ownUri, uri } = naming.make("tea")
    const pairs = {
      "shop://menu": "shop://tea/menu",
      "file:///a/b": "file://tea//a/b",
      "urn:isbn:1": "urn:tea/isbn:1",
      "http://u@h:80/p?q#f": "http://tea/u@h:80/p?q#f",
      "notes://{folder}/{id}": "notes://tea/{folder}/{id}"
    }
    for (const [own, outside] of Object.entries(pairs)) {
      expect(uri(own)).toBe(outside)
      expect(ownUri(outside)).toBe(own)
    }
    expect(ownUri("shop://teapot/menu")).toBeUndefined()
    expect(ownUri("menu")).toBeUndefined()
  })
})
