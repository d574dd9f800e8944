import { describe, expect, it } from "@effect/vitest"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as Effect from "effect/Effect"
import { connect, MockApi, operation, textOf } from "./kit.ts"

const png = new Uint8Array([0x89, 0x50, 0xff, 0x00])
const base64 = Buffer.from(png).toString("base64")

/** A document with a multipart body, whose field `file` has a schema. */
const upload = (openapi: string, schema: object, encoding?: object) =>
  operation("/", "post", {
    requestBody: {
      required: true,
      content: {
        "multipart/form-data": {
          schema: { type: "object", required: ["file"], properties: { file: schema } },
          ...(encoding === undefined ? undefined : { encoding: { file: encoding } })
        }
      }
    }
  }, { openapi })

const sentBy = Effect.fnUntraced(function*(document: object, file: unknown) {
  const api = new MockApi()
  const client = yield* connect(document, {}, api)
  const result = yield* client.callTool("it", { file })
  expect([textOf(result), result.isError]).toEqual(["{}", undefined])
  return api.last.form!.getAll("file")
})

const bytesOf = (part: unknown) => Effect.promise(async () => new Uint8Array(await (part as File).arrayBuffer()))

describe("a field of a multipart body", () => {
  const binary = { type: "string", contentMediaType: "application/octet-stream" }

  it.effect.each(
    [
      ["3.0.3", "format: binary", { type: "string", format: "binary" }, undefined, "application/octet-stream"],
      ["3.0.3", "format: binary that may be null", { type: "string", format: "binary", nullable: true }, {
        contentType: "image/*"
      }, "application/octet-stream"],
      ["3.1.0", "contentMediaType", binary, undefined, "application/octet-stream"],
      [
        "3.1.0",
        "contentMediaType of an image",
        { type: "string", contentMediaType: "image/png" },
        undefined,
        "image/png"
      ],
      ["3.1.0", "no type, and the media type in encoding", {}, { contentType: "image/png" }, "image/png"],
      ["3.1.0", "several media types in encoding", {}, { contentType: "image/png, image/jpeg" }, "image/png"],
      [
        "3.1.0",
        "a text with the media type of an image",
        { type: "string" },
        { contentType: "image/png" },
        "image/png"
      ],
      ["3.1.0", "no type", { description: "A photo" }, undefined, "application/octet-stream"],
      ["3.1.0", "a file or null", { anyOf: [binary, { type: "null" }] }, undefined, "application/octet-stream"],
      ["3.1.0", "a reference", { $ref: "#/components/schemas/File" }, undefined, "application/octet-stream"],
      ["3.1.0", "length", { ...binary, maxLength: 4 }, undefined, "application/octet-stream"]
    ] as const
  )("%s · is a file with the bytes: %s", ([openapi, , schema, encoding, type]) =>
    Effect.gen(function*() {
      const document = { ...upload(openapi, schema, encoding), components: { schemas: { File: binary } } }
      const [part] = yield* sentBy(document, base64)
      expect(part).toBeInstanceOf(File)
      expect((part as File).type).toBe(type)
      expect(yield* bytesOf(part)).toEqual(png)
    }))

  it.effect("3.1.0 · is a file for each item of a list", () =>
    Effect.gen(function*() {
      const list = { type: "array", items: binary }
      for (const schema of [list, { anyOf: [list, { type: "null" }] }]) {
        const parts = yield* sentBy(upload("3.1.0", schema), [base64, base64])
        expect(yield* Effect.forEach(parts, bytesOf)).toEqual([png, png])
      }
    }))

  it.effect.each(
    [
      ["3.0.3", "no type", {}, undefined],
      ["3.1.0", "a text", { type: "string" }, undefined],
      ["3.1.0", "a contentEncoding, which is part of the request", {
        type: "string",
        contentEncoding: "base64",
        contentMediaType: "image/png"
      }, undefined],
      ["3.1.0", "the media type of a text", { type: "string", contentMediaType: "text/html" }, undefined]
    ] as const
  )("%s · is the text itself: %s", ([openapi, , schema, encoding]) =>
    Effect.gen(function*() {
      expect(yield* sentBy(upload(openapi, schema, encoding), base64)).toEqual([base64])
    }))

  it.effect("is a file in a body that is one argument", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const alternatives = [{ properties: { file: binary } }, { properties: { url: { type: "string" } } }]
      const content = { "multipart/form-data": { schema: { type: "object", oneOf: alternatives } } }
      const client = yield* connect(operation("/", "post", { requestBody: { content } }), {}, api)
      expect((yield* client.listTools())[0]!.inputSchema.properties).toMatchObject({
        body: { description: "The body of the request, multipart/form-data. Give file as base64" }
      })
      yield* client.callTool("it", { body: { file: base64, url: "x" } })
      expect(yield* bytesOf(api.last.form!.get("file"))).toEqual(png)
      expect(api.last.form!.get("url")).toBe("x")
    }))

  it.effect("is absent if it is null", () =>
    Effect.gen(function*() {
      expect(yield* sentBy(upload("3.1.0", { type: ["string", "null"] }), null)).toEqual([])
    }))

  it.effect("is base64 for the model", () =>
    Effect.gen(function*() {
      const client = yield* connect(upload("3.1.0", {}, { contentType: "image/png" }))
      expect((yield* client.listTools())[0]!.inputSchema.properties).toEqual({
        file: { type: "string", contentEncoding: "base64" }
      })
      expect(textOf(yield* client.callTool("it", { file: "no base64!" }))).toBe("The argument \"file\" must be base64")
    }))
})

describe("a whole body", () => {
  const body = (content: object) => operation("/", "post", { requestBody: { required: true, content } })

  it.effect.each(
    [
      ["image/png", {}, "image/png"],
      ["application/octet-stream", {}, "application/octet-stream"],
      ["image/*", {}, "application/octet-stream"],
      ["*/*", { schema: { type: "string", format: "binary" } }, "application/octet-stream"]
    ] as const
  )("of %s is the bytes", ([mediaType, media, sent]) =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(body({ [mediaType]: media }), {}, api)
      yield* client.callTool("it", { body: Buffer.from("bytes").toString("base64") })
      expect([api.last.headers["content-type"], api.last.body]).toEqual([sent, "bytes"])
    }))

  it.effect("that cannot be written leaves the operation out", () =>
    Effect.gen(function*() {
      const { definitions, leftOut } = yield* OpenApi.list(body({ "multipart/mixed": {} }))
      expect([definitions, leftOut[0]!.message]).toEqual([
        [],
        "Its body is multipart/mixed, which cannot be written from arguments"
      ])
    }))

  it.effect.each(["application/json-seq", "application/jsonl", "application/x-ndjson"])(
    "of %s is a text",
    (type) =>
      Effect.gen(function*() {
        const api = new MockApi()
        const client = yield* connect(body({ [type]: {} }), {}, api)
        yield* client.callTool("it", { body: "{}\n{}\n" })
        expect([api.last.headers["content-type"], api.last.body]).toEqual([type, "{}\n{}\n"])
      })
  )

  it.effect("has well-formed texts", () =>
    Effect.gen(function*() {
      const api = new MockApi()
      const client = yield* connect(body({ "application/json": { schema: { type: "array" } } }), {}, api)
      yield* client.callTool("it", { body: [{ a: "x\ud83d" }] })
      expect(api.last.body).toBe("[{\"a\":\"x\ufffd\"}]")
    }))

  it.effect("is described without half a character", () =>
    Effect.gen(function*() {
      const description = `${"x".repeat(299)}😀 more`
      const client = yield* connect(operation("/", "post", {
        requestBody: { description, content: { "application/json": { schema: { type: "array" } } } }
      }))
      expect(JSON.stringify(yield* client.listTools())).not.toMatch(/\\ud[89a-f]/)
    }))
})

describe("an answer", () => {
  it.effect.each(["image/png", "application/octet-stream"])(
    "of %s has its bytes",
    (mediaType) =>
      Effect.gen(function*() {
        const api = new MockApi(() => new Response(png, { headers: { "content-type": mediaType } }))
        const client = yield* connect(
          operation("/", "get", { responses: { 200: { content: { [mediaType]: {} } } } }),
          {},
          api
        )
        const { content: [block] } = yield* client.callTool("it", {})
        expect(block).toMatchObject(
          mediaType === "image/png" ? { type: "image", data: base64 } : { type: "resource", resource: { blob: base64 } }
        )
      })
  )
})
