/** The endpoints of an `HttpApi` as tools, called in the process of their application. */
import { describe, expect, it } from "@effect/vitest"
import * as HttpApiTools from "@skein/openapi/HttpApiTools"
import { McpRequest } from "@skein/server/McpRequest"
import * as Telemetry from "@skein/server/Telemetry"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as kit from "../../../server/test/kit.ts"
import { Api, call, connect, routed, within } from "./kit.ts"
import type { Probe } from "./kit.ts"

const server = (
  options: Parameters<typeof HttpApiTools.layer<"shop", (typeof Api)["groups"][keyof (typeof Api)["groups"]]>>[1] = {},
  probe?: Probe
) => within(HttpApiTools.layer(Api, options), probe)

const text = (result: kit.Json): string => result.content[0].text

describe("the tools of an API", () => {
  it.effect("have the names, texts, hints and schemas of its endpoints", () =>
    Effect.gen(function*() {
      const client = yield* connect(server())
      const { tools } = yield* client.result("tools/list")
      const byName = Object.fromEntries(tools.map((tool: kit.Json) => [tool.name, tool]))
      expect(Object.keys(byName).toSorted()).toEqual([
        "pets_broken",
        "pets_find",
        "pets_keyed",
        "pets_large",
        "pets_list",
        "pets_note",
        "pets_other",
        "pets_photo",
        "pets_remove",
        "pets_rename",
        "pets_replace",
        "pets_slow",
        "pets_sum",
        "who_am_i"
      ])
      expect(byName["pets_find"]).toEqual({
        name: "pets_find",
        title: "Find a pet",
        description: "Returns one pet",
        annotations: { readOnlyHint: true },
        inputSchema: {
          type: "object",
          properties: {
            id: {
              type: "integer",
              minimum: Number.MIN_SAFE_INTEGER,
              maximum: Number.MAX_SAFE_INTEGER,
              description: "The number of the pet"
            }
          },
          required: ["id"],
          additionalProperties: false
        },
        outputSchema: {
          type: "object",
          properties: {
            id: expect.objectContaining({ type: "integer" }),
            name: { type: "string", description: "What it is called" },
            born: { type: "string", format: "date-time" }
          },
          required: ["id", "name", "born"],
          additionalProperties: true
        }
      })
      expect(byName["pets_list"].inputSchema).toEqual({
        type: "object",
        properties: {
          limit: expect.objectContaining({ type: "integer" }),
          tame: { type: "boolean" },
          since: { type: "string", format: "date-time" },
          kinds: { type: "array", items: { type: "string" } },
          "x-region": { type: "string" }
        },
        additionalProperties: false
      })
      expect(byName["pets_replace"].inputSchema).toMatchObject({
        properties: { id: {}, name: {}, id_body: {}, name_body: { description: "What it is called" }, born: {} },
        required: ["id", "id_body", "name_body", "born"]
      })
      expect(byName["pets_replace"].annotations).toEqual({
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: true
      })
      expect(byName["pets_rename"].annotations).toEqual({
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: true
      })
      expect(byName["pets_photo"].inputSchema.properties).toEqual({
        payload: { type: "string", contentEncoding: "base64" }
      })
      expect(byName["pets_remove"].description).toBe("DELETE /pets/:id")
      expect(byName["pets_remove"].outputSchema).toBeUndefined()
    }))

  it.effect("run the endpoints behind the middleware of the router", () =>
    Effect.gen(function*() {
      const client = yield* connect(server())
      routed.length = 0
      const found = yield* call(client, "pets_find", { id: 7 })
      expect(found).toMatchObject({ structuredContent: { id: 7, name: "Rex", born: "2020-01-02T00:00:00.000Z" } })
      expect(routed).toEqual(["/pets/7"])
      const listed = yield* call(client, "pets_list", {
        tame: true,
        since: "2020-01-01T00:00:00.000Z",
        kinds: ["cat"],
        "x-region": "north & south"
      })
      expect(listed.structuredContent).toEqual({
        limit: 10,
        tame: true,
        since: "2020-01-01T00:00:00.000Z",
        kinds: ["cat"],
        region: "north & south"
      })
      expect((yield* call(client, "pets_list", { limit: 3, tame: null })).structuredContent)
        .toEqual({ limit: 3, region: null })
      const born = "2021-01-01T00:00:00.000Z"
      expect(yield* call(client, "pets_replace", { id: 1, id_body: 2, name: "Ada", name_body: "Bob", born }))
        .toMatchObject({ structuredContent: { id: 1, name: "Ada", born } })
      expect(text(yield* call(client, "pets_rename", { name: "a=b&c", tame: false }))).toBe("a=b&c is wild")
      expect((yield* call(client, "pets_sum", { payload: [1, 2, 3.5] })).structuredContent).toBe(6.5)
      expect((yield* call(client, "pets_photo", { payload: "AAEC" })).content)
        .toEqual([{ type: "image", data: "AAEC", mimeType: "image/png" }])
      expect(yield* call(client, "pets_remove", { id: 1 }))
        .toEqual(expect.objectContaining({
          content: [{ type: "text", text: "DELETE /pets/:id succeeded with status 204" }]
        }))
    }))

  it.effect("stay in their path whatever a value contains", () =>
    Effect.gen(function*() {
      const client = yield* connect(server())
      const refused = yield* call(client, "pets_find", { id: "../me" })
      expect(refused.isError).toBe(true)
      expect(text(refused)).toMatch(/Invalid arguments for tool pets_find: "id": Expected/)
    }))

  it.effect("do not let a text become another segment, route or header", () =>
    Effect.gen(function*() {
      const client = yield* connect(server({ forwardHeaders: ["x-tenant"] }), { headers: { "x-tenant": "north" } })
      const { tools } = yield* client.result("tools/list")
      const note = tools.find(({ name }: kit.Json) => name === "pets_note")
      expect(Object.keys(note.inputSchema.properties)).toEqual(["name", "x-color"])
      const noted = yield* call(client, "pets_note", { name: "a/../b?c#d%2F", "x-color": "red" })
      expect(noted.structuredContent).toEqual(["a/../b?c#d%2F", "red", "north"])
      for (const name of ["", ".", ".."]) {
        expect(text(yield* call(client, "pets_note", { name }))).toContain(`"name" must not be "", "." or ".."`)
      }
      const broken = yield* call(client, "pets_note", { name: "a", "x-color": "red\r\nx-tenant: south" })
      expect(text(broken)).toContain(`"x-color" must be Latin-1 text without line breaks`)
      const own = yield* call(client, "pets_note", { name: "a", authorization: "Bearer eve" })
      expect(text(own)).toContain(`Unexpected argument "authorization"`)
      expect(text(yield* call(client, "pets_note", { name: "x".repeat(101) }))).toContain("shorten it")
    }))

  it.effect("reject invalid arguments with -32602 before 2025-11-25", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(server(), "2025-06-18")
      const error = yield* client.error("tools/call", { name: "pets_find", arguments: { id: "one" } })
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(`"id"`) })
    }))

  it.effect("return errors of the endpoint to the model", () =>
    Effect.gen(function*() {
      const client = yield* connect(server())
      const missing = yield* call(client, "pets_find", { id: 100 })
      expect(missing.isError).toBe(true)
      expect(text(missing)).toBe(
        `GET /pets/:id failed with HTTP status 404. Check the ids among the arguments. The endpoint answered:\n` +
          `{"_tag":"NoSuchPet","id":100}`
      )
      const wrong = yield* call(client, "pets_replace", { id: 1, id_body: "x", born: "never", extra: 1 })
      expect(text(wrong)).toMatch(/Unexpected argument "extra"/)
      expect(text(wrong)).toMatch(/\["name"\]/)
      expect(text(wrong)).toContain(`"name" is the argument "name_body"`)
      expect(text(yield* call(client, "pets_rename", { name: "", tame: true }))).toMatch(/^Invalid arguments .*"name"/)
      expect(text(yield* call(client, "pets_photo", { payload: "%" }))).toContain(`"payload" must be base64`)
      const other = yield* call(client, "pets_other")
      expect(other.isError).toBe(true)
      expect(text(other)).toContain("without the JSON that its schema describes")
    }))

  it.effect("hide the defects of handlers, which are logged", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const client = yield* connect(server())
        yield* client.defect("pets_broken", {})
        expect(lines.join("\n")).toContain("the secret cause")
      })
    ))

  it.effect("cut answers above maxResultBytes", () =>
    Effect.gen(function*() {
      const client = yield* connect(server({ maxResultBytes: 1000 }))
      const large = yield* call(client, "pets_large")
      expect(large.isError).toBe(true)
      expect(text(large)).toMatch(/more than 1000 bytes.*It begins with:\nx+…?$/s)
      expect(text(large).length).toBeLessThan(1_200)
    }))

  it.effect("end when the client cancels the call", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const client = yield* connect(server({}, {
        started: Deferred.succeed(started, undefined),
        interrupted: Deferred.succeed(interrupted, undefined)
      }))
      const id = client.send("tools/call", { name: "pets_slow", arguments: {} })
      yield* Deferred.await(started)
      client.notify("notifications/cancelled", { requestId: id })
      yield* Deferred.await(interrupted)
    }))
})

describe("the security of an API", () => {
  it.effect("refuses callers without credentials", () =>
    Effect.gen(function*() {
      const client = yield* connect(server(), { headers: { authorization: "Bearer ada" } })
      const refused = yield* call(client, "who_am_i")
      expect(refused.isError).toBe(true)
      expect(text(refused)).toBe(
        "GET /me failed with HTTP status 401. The call reached the endpoint without credentials. Do not repeat it: ask the user to " +
          "sign in or to check the token of the MCP client. If that does not help, tell the user that the MCP server passes " +
          "no credentials on to this endpoint. The endpoint answered:\n{\"_tag\":\"Refused\"}"
      )
    }))

  it.effect("advises by whether the call had credentials", () =>
    Effect.gen(function*() {
      const forwarding = server({ forwardHeaders: ["authorization"] })
      const absent = yield* call(yield* connect(forwarding), "who_am_i")
      expect(text(absent)).toContain(
        "The call had no credentials. Do not repeat it: ask the user to sign in or to set a token"
      )
      const basic = { headers: { authorization: "Basic YTpi" } }
      const refused = yield* call(yield* connect(forwarding, basic), "who_am_i")
      expect(text(refused)).toContain("The endpoint refused the credentials of the caller. Do not repeat the call")
      const withheld = yield* call(yield* connect(forwarding, { principal: { id: "" } }), "who_am_i")
      expect(text(withheld)).toContain("The call reached the endpoint without credentials. Do not repeat it")
      const empty = server({ credentials: () => Effect.succeed({ Authorization: "" }) })
      expect(text(yield* call(yield* connect(empty), "who_am_i"))).toContain(
        "The call had no credentials. Do not repeat it"
      )
      const keyed = yield* call(yield* connect(server({ forwardHeaders: ["X-Key"] })), "pets_keyed")
      expect(text(keyed)).toContain("ask the user to sign in or to set a token")
      const headers = { "x-key": "wrong" }
      const wrong = yield* call(yield* connect(server({ forwardHeaders: ["X-Key"] }), { headers }), "pets_keyed")
      expect(text(wrong)).toContain("The endpoint refused the credentials of the caller")
    }))

  it.effect("receives the headers of forwardHeaders", () =>
    Effect.gen(function*() {
      const client = yield* connect(server({ forwardHeaders: ["Authorization"] }), {
        headers: { authorization: "Bearer ada" }
      })
      expect((yield* call(client, "who_am_i")).structuredContent).toBe("ada")
    }))

  it.effect("receives the headers of credentials, in place of those of the client", () =>
    Effect.gen(function*() {
      const tools = HttpApiTools.layer(Api, {
        forwardHeaders: ["authorization"],
        credentials: ({ security }) =>
          Effect.map(McpRequest, ({ caller }) => ({ authorization: `Bearer ${caller.principal?.id} by ${security}` }))
      })
      const client = yield* connect(within(tools), { headers: { authorization: "Bearer eve" } })
      expect((yield* call(client, "who_am_i")).structuredContent).toBe("undefined by bearer")
    }))

  it.effect("receives the headers of credentials that are promised", () =>
    Effect.gen(function*() {
      const tools = server({
        credentials: async ({ security }, { caller }) => ({
          authorization: `Bearer ${caller.principal?.id} by ${security}`
        })
      })
      const client = yield* connect(tools)
      expect((yield* call(client, "who_am_i")).structuredContent).toBe("undefined by bearer")
    }))

  it.effect("reads the principal of the caller", () =>
    Effect.gen(function*() {
      const client = yield* connect(server(), { principal: { id: "grace" } })
      expect((yield* call(client, "who_am_i")).structuredContent).toBe("grace")
    }))
})

describe("the spans of a call", () => {
  const tracing = Effect.sync(() => {
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const named = (name: string): Tracer.Span => {
      const [found, ...others] = spans.filter((span) => span.name === name)
      expect(found, `${name} among ${spans.map((span) => span.name).join(", ")}`).toBeDefined()
      expect(others).toEqual([])
      return found!
    }
    return { layer: Layer.succeed(Tracer.Tracer, tracer), named }
  })
  const parentOf = (span: Tracer.Span) => Option.getOrUndefined(span.parent)

  it.effect("are children of the span of the MCP request, in its trace", () =>
    Effect.gen(function*() {
      const { layer, named } = yield* tracing
      const traced = within(Layer.merge(Telemetry.layer(), HttpApiTools.layer(Api)))
      const client = yield* connect(traced).pipe(Effect.provide(layer))
      yield* call(client, "pets_find", { id: 7 })
      const request = named("tools/call pets_find")
      const endpoint = named("GET")
      expect(parentOf(endpoint)).toBe(request)
      expect(parentOf(named("Pets.find"))).toBe(endpoint)
      expect(named("Pets.find").traceId).toBe(request.traceId)
    }))

  it.effect("are in the trace of the _meta of the client, whatever its HTTP request has", () =>
    Effect.gen(function*() {
      const { layer, named } = yield* tracing
      const traced = within(
        Layer.merge(Telemetry.layer(), HttpApiTools.layer(Api))
      )
      const other = "00-11111111111111111111111111111111-2222222222222222-01"
      const client = yield* connect(traced, { headers: { traceparent: other } }).pipe(Effect.provide(layer))
      const traceId = "0af7651916cd43dd8448eb211c80319c"
      yield* client.result("tools/call", {
        name: "pets_find",
        arguments: { id: 7 },
        _meta: { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
      })
      expect(named("tools/call pets_find").traceId).toBe(traceId)
      expect(parentOf(named("GET"))).toBe(named("tools/call pets_find"))
    }))
})

describe("the options", () => {
  const names = (client: kit.Client) =>
    Effect.map(client.result("tools/list"), ({ tools }) => tools.map(({ name }: kit.Json) => name))

  it.effect("select endpoints by group, name or function, and name them", () =>
    Effect.gen(function*() {
      const some = yield* connect(server({
        include: { groups: ["me"], endpoints: ["pets.find", "pets.list"] },
        exclude: { endpoints: ["pets.list"] }
      }))
      expect(yield* names(some)).toEqual(["pets_find", "who_am_i"])
      const named = yield* connect(server({
        include: ({ method, path }) => method === "GET" && path.startsWith("/pets"),
        name: ({ endpoint }) => endpoint === "find" ? "get_pet" : undefined
      }))
      expect(yield* names(named)).toEqual(["get_pet", "pets_list", "pets_note"])
    }))

  it.effect("describe endpoints", () =>
    Effect.gen(function*() {
      const client = yield* connect(server({
        include: { endpoints: ["pets.find", "pets.list"] },
        description: ({ endpoint, path }) => endpoint === "list" ? `Returns all pets of ${path}` : undefined
      }))
      const { tools } = yield* client.result("tools/list")
      expect(tools.map(({ description }: kit.Json) => description)).toEqual([
        "Returns one pet",
        "Returns all pets of /pets"
      ])
    }))

  it.effect("leave out endpoints that cannot be tools, with a warning, or fail", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        yield* connect(server())
        expect(lines.filter((line) => line.includes("cannot be a tool")).map((line) => line.trim())).toEqual([
          "The endpoint pets.watch cannot be a tool: it answers with a stream or upgrades the connection, which a tool " +
          "cannot do",
          "The endpoint pets.upload cannot be a tool: its payload is multipart, which arguments cannot be"
        ])
        const error = yield* kit.failure(server({ onUnsupported: "fail" }))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidSchema" },
          definition: "pets_watch"
        })
      })
    ))

  it.effect("reject a name that another definition has", () =>
    Effect.gen(function*() {
      const error = yield* kit.failure(
        server({ include: { groups: ["me"], endpoints: ["pets.find"] }, name: () => "one" })
      )
      expect(error).toMatchObject({ reason: { _tag: "DuplicateName" } })
    }))

  it.effect("reports an API that the router does not serve, in the log", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const client = yield* connect(server({ baseUrl: "http://localhost/api" }))
        for (const id of [1, 2]) {
          const missing = yield* call(client, "pets_find", { id })
          expect(missing.isError).toBe(true)
          expect(text(missing)).toBe(
            "The server has no route for GET /pets/:id. If an argument in the path is long, shorten it. Otherwise tell the user " +
              "that the MCP server must be corrected"
          )
        }
        expect(text(yield* call(client, "pets_list"))).toBe(
          "The server has no route for GET /pets. Do not repeat the call: tell the user that the MCP server must be corrected"
        )
        expect(lines.filter((line) => line.includes("the router has no route"))).toEqual([
          expect.stringContaining("for GET http://localhost/api/pets/1: add HttpApiBuilder.layer")
        ])
      })
    ))
})
