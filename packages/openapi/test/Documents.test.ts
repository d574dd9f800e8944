import { describe, expect, it } from "@effect/vitest"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { connect, documentOf, json, MockApi, operation } from "./kit.ts"

const listWith = (api: MockApi, document: OpenApi.Document, options: OpenApi.Options = {}) =>
  Effect.provide(OpenApi.list(document, options), api.layer)
const list = (document: OpenApi.Document, options: OpenApi.Options = {}) => listWith(new MockApi(), document, options)
const reasonOf = (document: OpenApi.Document, options: OpenApi.Options = {}, api = new MockApi()) =>
  Effect.map(Effect.flip(listWith(api, document, options)), ({ reason }) => reason)

const yaml = `
openapi: 3.0.3
info: { title: Pets, version: 1.0 }
servers: [{ url: "https://{region}.pets.example/{base}", variables: { region: { default: eu }, base: { default: v2 } } }]
x-paging: &paging
  - { name: limit, in: query, schema: { type: integer } }
paths:
  /pets:
    get:
      operationId: listPets
      parameters: *paging
      responses: { 200: { description: OK } }
`

describe("a document", () => {
  it.effect("is JSON, YAML, or parsed", () =>
    Effect.gen(function*() {
      const { definitions: [found] } = yield* list(yaml)
      expect(found).toMatchObject({ name: "listPets", operation: { baseUrl: "https://eu.pets.example/v2" } })
      const parsed = documentOf({ "/": { get: {} } })
      for (const document of [parsed, JSON.stringify(parsed), `\ufeff${JSON.stringify(parsed, null, 2)}`]) {
        expect((yield* list(document)).definitions).toHaveLength(1)
      }
    }))

  it.effect.each([
    ["text", "\"just a text\"", "ParseFailed", "it is not an object"],
    ["broken YAML", "a: [1", "ParseFailed", "Cannot parse the document"],
    ["Swagger 2.0", { swagger: "2.0" }, "UnsupportedVersion", "swagger2openapi"],
    ["another version", { openapi: "4.0.0" }, "UnsupportedVersion", "\"openapi\" is \"4.0.0\""],
    [
      "a bomb of aliases",
      `a: &a [x, x, x, x, x, x, x, x, x]\n${
        "bcdefghij".split("").map((name, at) => `${name}: &${name} [${`*${"abcdefghi"[at]},`.repeat(9)}]`).join("\n")
      }`,
      "ParseFailed",
      "values"
    ]
  ])("is refused: %s", ([, document, tag, text]) =>
    Effect.gen(function*() {
      const reason = yield* reasonOf(document)
      expect(reason._tag).toBe(tag)
      expect(reason.message).toContain(text)
    }))

  it.effect("fails with the place of a server whose URL is not usable", () =>
    Effect.gen(function*() {
      const document = (url: string) => ({ openapi: "3.1.0", servers: [{ url }], paths: { "/": { get: {} } } })
      const { leftOut } = yield* list(document("/v1"))
      expect(leftOut[0]!.message).toContain("\"/v1\" at #/servers/0/url, is not absolute. Give the option baseUrl")
      expect((yield* list(document("ftp://a.example"))).leftOut).toHaveLength(1)
      const { definitions } = yield* list(document("/v1"), { documentUrl: "https://pets.example/docs/openapi.json" })
      expect(definitions[0]!.operation.baseUrl).toBe("https://pets.example/v1")
      expect((yield* reasonOf(document("/v1"), { baseUrl: "pets.example" }))._tag).toBe("InvalidDocument")
    }))

  it.effect("is left unchanged", () =>
    Effect.gen(function*() {
      const document = documentOf({ "/": { get: { parameters: [{ $ref: "#/components/parameters/A" }] } } }, {
        components: { parameters: { A: { name: "a", in: "query" } } }
      })
      const before = structuredClone(document)
      yield* list(document)
      expect(document).toEqual(before)
    }))
})

describe("an operation that cannot be called", () => {
  const broken = documentOf({
    "/": { get: { parameters: [{ name: "a", in: "query", schema: { $ref: "#/nothing" } }] }, post: {} }
  })

  it.effect("is left out with its place", () =>
    Effect.gen(function*() {
      const { definitions, leftOut } = yield* list(broken)
      expect(definitions.map(({ name }) => name)).toEqual(["post"])
      expect(leftOut).toEqual([{
        kind: "operation",
        place: "#/paths/~1/get",
        message: "The reference \"#/nothing\" leads to nothing"
      }])
    }))

  it.effect("is one without a slash in its path, or that is not an object; a parameter without a name is reported", () =>
    Effect.gen(function*() {
      const { definitions, leftOut } = yield* list(documentOf({
        "/ok": { get: { parameters: [{ name: "a", in: "query" }] }, put: null },
        pets: { get: {} },
        "/text": { get: "a" },
        "/unnamed": { get: { parameters: [{ in: "query" }, null, { name: "a", in: "query" }] } },
        "x-note": { get: {} }
      }))
      expect(definitions.map(({ name }) => name)).toEqual(["get_ok", "get_unnamed"])
      expect(leftOut.map(({ message, place }) => [place, message])).toEqual([
        ["#/paths/pets", "The path \"pets\" must begin with a slash"],
        ["#/paths/~1text/get", "The operation is not an object"],
        ["#/paths/~1unnamed/get/parameters/0", "The parameter has no name. It is not sent"],
        ["#/paths/~1unnamed/get/parameters/1", "The parameter has no name. It is not sent"]
      ])
    }))

  it.effect("fails the layer with onInvalidOperation: \"fail\"", () =>
    Effect.gen(function*() {
      expect((yield* reasonOf(broken, { onInvalidOperation: "fail" }))._tag).toBe("InvalidReference")
      const error = yield* Effect.flip(connect(broken, { onInvalidOperation: "fail" }))
      expect(error).toMatchObject({
        _tag: "OpenApiError",
        reason: { _tag: "InvalidReference", reference: "#/nothing" }
      })
    }))

  it.effect("is one with a schema that contains itself", () =>
    Effect.gen(function*() {
      const { leftOut } = yield* list(operation("/", "get", {
        parameters: [{ name: "a", in: "query", schema: { $ref: "#/components/schemas/A" } }]
      }, { components: { schemas: { A: { allOf: [{ $ref: "#/components/schemas/A" }] } } } }))
      expect(leftOut[0]!.message).toContain("no usable schema")
    }))
})

describe("references to other documents", () => {
  const shared = {
    components: {
      schemas: {
        Pet: { type: "object", properties: { owner: { $ref: "#/components/schemas/Owner" } } },
        Owner: { type: "string" }
      }
    }
  }
  const main = (ref: string) =>
    operation("/", "post", { requestBody: { content: { "application/json": { schema: { $ref: ref } } } } })
  const serving = () =>
    new MockApi(({ url }) => url.endsWith("/shared.json") ? json(shared) : new Response(null, { status: 404 }))
  const ref = "https://pets.example/shared.json#/components/schemas/Pet"
  const fail = { onInvalidOperation: "fail" } as const

  it.effect("are followed where the options allow it", () =>
    Effect.gen(function*() {
      const api = serving()
      const client = yield* connect(main(ref), { allowReference: ({ hostname }) => hostname === "pets.example" }, api)
      const [tool] = yield* client.listTools()
      expect(tool!.inputSchema.properties).toEqual({ owner: { type: "string" } })
      expect(api.seen.map(({ url }) => url)).toEqual(["https://pets.example/shared.json"])
    }))

  it.effect("are followed relative to the document", () =>
    Effect.gen(function*() {
      const options = { documentUrl: "https://pets.example/openapi.json", allowReference: () => true }
      const { definitions } = yield* listWith(serving(), main("./shared.json#/components/schemas/Pet"), options)
      expect(definitions).toHaveLength(1)
    }))

  it.effect("are refused otherwise, and no request is made", () =>
    Effect.gen(function*() {
      const api = serving()
      expect(yield* reasonOf(main(ref), fail, api)).toMatchObject({
        _tag: "ReferenceNotAllowed",
        reference: "https://pets.example/shared.json"
      })
      expect((yield* reasonOf(main("shared.json#/a"), { ...fail, allowReference: () => true }, api)).message).toContain(
        "give documentUrl"
      )
      const http = yield* reasonOf(main(ref.replace("https", "http")), { ...fail, allowReference: () => true }, api)
      expect(http.message).toContain("http: needs the option allowHttp")
      expect(api.seen).toEqual([])
      const allowed = { allowReference: () => true, allowHttp: true }
      expect((yield* listWith(serving(), main(ref.replace("https", "http")), allowed)).definitions).toHaveLength(1)
    }))

  it.effect.each(
    [
      [
        "an extension",
        documentOf({ "/ok": { get: { "x-samples": [{ $ref: "samples/curl.sh" }] } } }, {
          "x-topics": [{ content: { $ref: "./docs/start.md" } }]
        })
      ],
      ["information", documentOf({ "/ok": { get: {} } }, { info: { description: { $ref: "./info.md" } } })],
      [
        "a schema of an answer",
        documentOf({
          "/ok": {
            get: { responses: { 200: { content: { "application/json": { schema: { $ref: "./pet.json" } } } } } }
          }
        })
      ],
      [
        "an operation that is not selected",
        documentOf({
          "/ok": { get: {} },
          "/other": { get: { operationId: "other", parameters: [{ $ref: "https://schemas.example/p.json" }] } }
        })
      ]
    ] as const
  )("do not matter in %s, also where invalid operations fail the layer", ([, document]) =>
    Effect.gen(function*() {
      const { definitions } = yield* list(document, { ...fail, exclude: { ids: ["other"] } })
      expect(definitions.map(({ name }) => name)).toEqual(["get_ok"])
    }))

  it.effect("take the operation that needs them, and no other", () =>
    Effect.gen(function*() {
      const document = documentOf({
        "/ok": { get: {} },
        "/bad": { get: { parameters: [{ $ref: "https://schemas.example/p.json#/a" }] } },
        "/path": { $ref: "./path.yaml" }
      })
      const { definitions, leftOut } = yield* list(document)
      expect(definitions.map(({ name }) => name)).toEqual(["get_ok"])
      expect(leftOut).toEqual([
        {
          kind: "operation",
          place: "#/paths/~1bad/get",
          message: "The reference \"https://schemas.example/p.json\" leads to another document. Allow it with the " +
            "option allowReference"
        },
        {
          kind: "operation",
          place: "#/paths/~1path",
          message: "The reference \"path.yaml\" is relative, and the document has no URL: give documentUrl"
        }
      ])
    }))

  it.effect("lead back to the document, and to other parts of theirs", () =>
    Effect.gen(function*() {
      const api = new MockApi(() =>
        json({
          a: { type: "object", properties: { b: { $ref: "#/b" }, c: { $ref: "openapi.json#/components/schemas/C" } } },
          b: { type: "object", properties: { a: { $ref: "#/a" } } }
        })
      )
      const document = { ...main("parts.json#/a"), components: { schemas: { C: { type: "string" } } } }
      const client = yield* connect(document, {
        documentUrl: "https://pets.example/openapi.json",
        allowReference: () => true
      }, api)
      const [tool] = yield* client.listTools()
      expect(tool!.inputSchema).toMatchObject({
        properties: { b: { $ref: "#/$defs/b" }, c: { type: "string" } },
        $defs: { b: { properties: { a: { $ref: "#/$defs/a" } } } }
      })
      expect(api.seen).toHaveLength(1)
    }))

  it.effect("are bounded in number, size and time", () =>
    Effect.gen(function*() {
      const options = { ...fail, allowReference: () => true }
      const chain = new MockApi(({ url }) => json({ $ref: `https://pets.example/${Number(/\d+$/.exec(url)![0]) + 1}` }))
      expect(yield* reasonOf(main("https://pets.example/1"), options, chain))
        .toMatchObject({ _tag: "LimitExceeded", limit: "documents" })
      expect(chain.seen).toHaveLength(1_000)
      const half = new MockApi(({ url }) =>
        new Response(`{ "$ref": "https://pets.example/${Number(/\d+$/.exec(url)![0]) + 1}" }`.padEnd(17 * 1024 * 1024))
      )
      expect(yield* reasonOf(main("https://pets.example/1"), options, half)).toMatchObject({
        _tag: "LimitExceeded",
        limit: "documentBytes",
        message: "The document https://pets.example/2 has more than 33554432 bytes together with the other documents " +
          "of references"
      })
      const large = new MockApi(() => new Response("x".repeat(32 * 1024 * 1024 + 1)))
      expect(yield* reasonOf(main(ref), options, large))
        .toMatchObject({ _tag: "LimitExceeded", limit: "documentBytes" })
      const slow = new MockApi(() => Effect.never)
      const loading = yield* Effect.forkChild(reasonOf(main(ref), options, slow))
      yield* TestClock.adjust("30 seconds")
      expect(yield* Fiber.join(loading)).toMatchObject({ _tag: "LimitExceeded", limit: "loadTime" })
    }))

  it.effect("do not follow redirects, and report a status", () =>
    Effect.gen(function*() {
      const options = { ...fail, allowReference: () => true }
      const away = new MockApi(() => new Response(null, { status: 302, headers: { location: "http://10.0.0.1/" } }))
      expect((yield* reasonOf(main(ref), options, away)).message).toContain(
        "it redirects, which is not followed"
      )
      const missing = new MockApi(() => new Response(null, { status: 404 }))
      expect((yield* reasonOf(main(ref), options, missing)).message).toContain(
        "the status of the answer is 404"
      )
    }))

  it.effect("in examples are data", () =>
    Effect.gen(function*() {
      const document = operation("/", "post", {
        requestBody: {
          content: { "application/json": { schema: { type: "object" }, example: { $ref: "https://evil.example/a" } } }
        }
      })
      const api = new MockApi()
      expect((yield* listWith(api, document)).definitions).toHaveLength(1)
      expect(api.seen).toEqual([])
    }))
})

describe("references by an identifier", () => {
  const schemas = {
    Pet: {
      $id: "https://schemas.example/pet",
      $anchor: "pet",
      type: "object",
      properties: { name: { $ref: "#/$defs/Name" }, owner: { $ref: "#owner" } },
      $defs: { Name: { type: "string" }, Owner: { $anchor: "owner", type: "integer" } }
    },
    Named: { $id: "Named", type: "object", properties: { other: { $ref: "#/components/schemas/Other" } } },
    Other: { type: "boolean" }
  }
  const using = (ref: string, openapi = "3.1.0") =>
    operation("/", "post", {
      requestBody: { content: { "application/json": { schema: { $ref: ref } } } }
    }, { components: { schemas }, openapi })
  const propertiesOf = (ref: string) =>
    Effect.gen(function*() {
      const client = yield* connect(using(ref))
      return (yield* client.listTools())[0]!.inputSchema.properties
    })

  it.effect.each(["#/components/schemas/Pet", "https://schemas.example/pet", "https://schemas.example/pet#pet"])(
    "3.1.0 · lead to the schema: %s",
    (ref) =>
      Effect.gen(function*() {
        expect(yield* propertiesOf(ref)).toEqual({ name: { type: "string" }, owner: { type: "integer" } })
      })
  )

  it.effect("3.1.0 · leave references of the document inside of a schema whose $id is its name", () =>
    Effect.gen(function*() {
      expect(yield* propertiesOf("#/components/schemas/Named")).toEqual({ other: { type: "boolean" } })
    }))

  it.effect("3.0.3 · have no meaning", () =>
    Effect.gen(function*() {
      const { definitions, leftOut } = yield* list(using("#pet", "3.0.3"))
      expect([definitions, leftOut[0]!.message]).toEqual([[], expect.stringContaining("leads to nothing")])
    }))
})

describe("a $dynamicRef", () => {
  // The example of OpenAPI 3.1.1, "Generic Data Structures": a list whose items another schema determines.
  const List = {
    $id: "list",
    type: "object",
    properties: { items: { type: "array", items: { $dynamicRef: "#item" } } },
    $defs: { item: { $dynamicAnchor: "item", not: {} } }
  }
  const Pets = { $id: "pets", $ref: "list", $defs: { item: { $dynamicAnchor: "item", type: "string" } } }
  const Tree = {
    $id: "tree",
    $dynamicAnchor: "node",
    type: "object",
    properties: { name: { type: "string" }, children: { type: "array", items: { $dynamicRef: "#node" } } },
    required: ["name"]
  }
  const listing = (schemas: object, $ref: string, openapi = "3.1.1") =>
    list(
      operation("/", "post", {
        requestBody: { content: { "application/json": { schema: { properties: { it: { $ref } } } } } }
      }, { components: { schemas }, openapi })
    )
  const accepts = (schemas: object, $ref: string, value: unknown, openapi = "3.1.1") =>
    Effect.gen(function*() {
      const document = operation("/", "post", {
        requestBody: { content: { "application/json": { schema: { properties: { it: { $ref } } } } } }
      }, { components: { schemas }, openapi })
      const client = yield* connect(document)
      return (yield* client.callTool("it", { it: value })).isError !== true
    })

  it.effect("3.1.1 · leads to its anchor, if no other schema has it", () =>
    Effect.gen(function*() {
      expect((yield* listing({ Tree }, "tree")).leftOut).toEqual([])
      expect(yield* accepts({ Tree }, "tree", { name: "a", children: [{ name: "b" }] })).toBe(true)
      expect(yield* accepts({ Tree }, "tree", { name: "a", children: [{ children: [] }] })).toBe(false)
    }))

  it.effect("3.1.1 · accepts what one of its targets accepts, and is reported", () =>
    Effect.gen(function*() {
      const schemas = { List, Pets }
      expect((yield* listing(schemas, "pets")).leftOut).toEqual([{
        kind: "part",
        place: "#/components/schemas/List/properties/items/items/$dynamicRef",
        message: "\"#item\" has several targets. A value of any of them is accepted"
      }])
      expect(yield* accepts(schemas, "pets", { items: ["Rex"] })).toBe(true)
      expect(yield* accepts(schemas, "pets", { items: [1] })).toBe(false)
    }))

  it.effect("3.1.1 · accepts every value with more than 16 targets", () =>
    Effect.gen(function*() {
      const more = Object.fromEntries(
        Array.from({ length: 16 }, (_, at) => [`S${at}`, { $id: `s${at}`, $dynamicAnchor: "item", type: "null" }])
      )
      expect(yield* accepts({ List, ...more }, "list", { items: [1] })).toBe(true)
    }))

  it.effect("3.1.1 · is a reference to an $anchor as a $ref is, and a broken one takes its operation", () =>
    Effect.gen(function*() {
      const A = { $id: "a", properties: { b: { $dynamicRef: "#b" } }, $defs: { b: { $anchor: "b", type: "string" } } }
      const B = { $id: "b", $dynamicAnchor: "b" }
      const C = { $id: "c", $dynamicAnchor: "b" }
      expect((yield* listing({ A, B, C }, "a")).leftOut).toEqual([])
      expect(yield* accepts({ A, B, C }, "a", { b: 1 })).toBe(false)
      expect((yield* listing({ A: { $id: "a", items: { $dynamicRef: "#none" } } }, "a")).leftOut).toEqual([
        expect.objectContaining({ kind: "operation", message: expect.stringContaining("leads to nothing") })
      ])
    }))

  it.effect("3.0.3 · has no meaning", () =>
    Effect.gen(function*() {
      const ref = "#/components/schemas/Any"
      expect((yield* listing({ Any: { $dynamicRef: "#none" } }, ref, "3.0.3")).leftOut).toEqual([])
      expect(yield* accepts({ Any: { $dynamicRef: "#none" } }, ref, 1, "3.0.3")).toBe(true)
    }))
})

describe("a document in a file", () => {
  const folder = (files: Readonly<Record<string, string>>) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const root = mkdtempSync(join(tmpdir(), "skein-openapi-"))
        for (const [name, text] of Object.entries(files)) {
          mkdirSync(dirname(join(root, name)), { recursive: true })
          writeFileSync(join(root, name), text)
        }
        return root
      }),
      (root) => Effect.sync(() => rmSync(root, { recursive: true }))
    )
  const withRef = (ref: string) => JSON.stringify(operation("/", "get", { parameters: [{ $ref: ref }] }))

  it.effect("has references to files in its folder, and not to others", () =>
    Effect.gen(function*() {
      const root = yield* folder({
        "api/a.json": withRef("parts/b.yaml#/limit"),
        "api/parts/b.yaml": "limit: { name: limit, in: query, schema: { $ref: 'c.yaml' } }",
        "api/parts/c.yaml": "type: integer",
        "api/out.json": withRef("../secret.yaml#/limit"),
        "secret.yaml": "limit: { name: limit, in: query }"
      })
      const url = (name: string) => pathToFileURL(join(root, name))
      const client = yield* connect(url("api/a.json"))
      expect((yield* client.listTools())[0]!.inputSchema.properties).toEqual({ limit: { type: "integer" } })
      expect((yield* reasonOf(url("api/out.json"), { onInvalidOperation: "fail" }))._tag).toBe("ReferenceNotAllowed")
      expect((yield* list(url("api/out.json").href, { allowReference: () => true })).definitions).toHaveLength(1)
      expect((yield* reasonOf(url("none.json"))).message).toMatch(/^Cannot read the document file:.*none.json: ENOENT$/)
      truncateSync(url("api/a.json"), 32 * 1024 * 1024 + 1)
      expect(yield* reasonOf(url("api/a.json"))).toMatchObject({ limit: "documentBytes" })
    }))

  it.effect("may have hundreds of files, with a part in each", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 120 }, (_, at) => `p${at}`)
      const root = yield* folder({
        "a.json": JSON.stringify(
          documentOf(Object.fromEntries(names.map((name) => [`/${name}`, { $ref: `paths/${name}.yaml` }])))
        ),
        ...Object.fromEntries(names.flatMap((name) => [
          [`paths/${name}.yaml`, `get: { parameters: [{ $ref: '../parts/${name}.yaml' }] }`],
          [`parts/${name}.yaml`, `{ name: ${name}, in: query }`]
        ]))
      })
      const { definitions, leftOut } = yield* list(pathToFileURL(join(root, "a.json")))
      expect([definitions.length, leftOut]).toEqual([120, []])
    }))

  it.effect("does not follow a symbolic link out of its folder without the option", () =>
    Effect.gen(function*() {
      const root = yield* folder({
        "api/a.json": withRef("link.yaml#/limit"),
        "api/b.json": withRef("folder/limit.yaml#/limit"),
        "api/c.json": withRef("inner.yaml#/limit"),
        "api/limit.yaml": "limit: { name: limit, in: query }",
        "outside/limit.yaml": "limit: { name: limit, in: query }"
      })
      symlinkSync(join(root, "outside/limit.yaml"), join(root, "api/link.yaml"))
      symlinkSync(join(root, "outside"), join(root, "api/folder"))
      symlinkSync(join(root, "api/limit.yaml"), join(root, "api/inner.yaml"))
      const url = (name: string) => pathToFileURL(join(root, name))
      for (const name of ["api/a.json", "api/b.json"]) {
        const { definitions, leftOut } = yield* list(url(name))
        expect(definitions).toEqual([])
        expect(leftOut[0]!.message).toContain("a symbolic link leads out of the folder of the document")
        expect((yield* list(url(name), { allowReference: () => true })).definitions).toHaveLength(1)
      }
      expect((yield* list(url("api/c.json"))).definitions).toHaveLength(1)
    }))

  it.effect("is not a device, a pipe or a folder", () =>
    Effect.gen(function*() {
      const root = yield* folder({ "a.json": "{}" })
      const pipe = join(root, "pipe")
      execFileSync("mkfifo", [pipe])
      for (const path of ["/dev/zero", pipe, root]) {
        const { message } = yield* reasonOf(pathToFileURL(path))
        expect([path, message]).toEqual([path, expect.stringMatching(/: it is not a file$/)])
      }
    }))
})
