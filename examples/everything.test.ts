import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Everything } from "./everything/server.ts"
import * as kit from "./testKit.ts"

/** A client connected in memory. Each test has its own server. */
const connect = (revision: Revision.Revision) =>
  Effect.flatMap(
    McpServer.McpServer,
    ({ serve }) => Client.make(InMemoryTransport.transport(serve), { revisions: [revision] })
  )

describe("everything", () => {
  for (const revision of Revision.all) {
    describe(revision, () => {
      it.effect("describes every tool, resource, template and prompt", () =>
        Effect.gen(function*() {
          const client = yield* connect(revision)
          const offered = [
            ...(yield* client.listTools()),
            ...(yield* client.listResources()),
            ...(yield* client.listResourceTemplates()),
            ...(yield* client.listPrompts())
          ]
          expect(offered.filter(({ description }) => description === undefined)).toEqual([])
          expect(offered.length).toBeGreaterThan(15)
        }).pipe(Effect.provide(Everything)))

      it.effect("returns each type of content, and a tool error", () =>
        Effect.gen(function*() {
          const client = yield* connect(revision)
          const kinds = (name: string) =>
            Effect.map(client.callTool(name), ({ content }) => content.map(({ type }) => type))
          expect(yield* kinds("test_simple_text")).toEqual(["text"])
          expect(yield* kinds("test_image_content")).toEqual(["image"])
          // 2024-11-05 has no audio content.
          expect(yield* kinds("test_audio_content")).toEqual([revision === "2024-11-05" ? "text" : "audio"])
          expect(yield* kinds("test_embedded_resource")).toEqual(["resource"])
          expect(yield* kinds("test_multiple_content_types")).toEqual(["text", "image", "resource"])
          expect(yield* client.callTool("test_error_handling")).toMatchObject({
            isError: true,
            content: [{ text: "This tool intentionally returns an error for testing" }]
          })
        }).pipe(Effect.provide(Everything)))

      it.live("sends progress before the result, in order and from zero", () =>
        Effect.gen(function*() {
          const client = yield* connect(revision)
          const received: Array<number> = []
          const onProgress = ({ progress }: { readonly progress: number }) => void received.push(progress)
          yield* client.callTool("test_tool_with_progress", {}, { onProgress })
          expect(received).toEqual([0, 50, 100])
        }).pipe(Effect.provide(Everything)))

      it.effect("reads text and binary resources, and a template", () =>
        Effect.gen(function*() {
          const client = yield* connect(revision)
          const read = (uri: string) => Effect.map(client.readResource(uri), ({ contents }) => contents[0])
          expect(yield* read("test://static-text")).toMatchObject({ text: expect.stringMatching(/^This is/) })
          expect(yield* read("test://static-binary")).toMatchObject({ mimeType: "image/png", blob: expect.any(String) })
          const data = yield* read("test://template/123/data")
          expect(data).toMatchObject({ text: "{\"id\":\"123\",\"templateTest\":true,\"data\":\"Data for ID: 123\"}" })
        }).pipe(Effect.provide(Everything)))

      it.effect("completes prompts with arguments, resources and images", () =>
        Effect.gen(function*() {
          const client = yield* connect(revision)
          const get = (name: string, args?: Readonly<Record<string, string>>) =>
            Effect.map(client.getPrompt(name, args), ({ messages }) => messages.map(({ content }) => content))
          expect(yield* get("test_simple_prompt")).toMatchObject([{ text: "This is a simple prompt for testing." }])
          expect(yield* get("test_prompt_with_arguments", { arg1: "hello", arg2: "world" })).toMatchObject([
            { text: "Prompt with arguments: arg1='hello', arg2='world'" }
          ])
          const embedded = yield* get("test_prompt_with_embedded_resource", { resourceUri: "test://example" })
          expect(embedded).toMatchObject([{ resource: { uri: "test://example" } }, { type: "text" }])
          expect(yield* get("test_prompt_with_image")).toMatchObject([{ type: "image" }, { type: "text" }])
        }).pipe(Effect.provide(Everything)))
    })
  }

  it.effect("offers a tool for the duration of a call, and notifies clients", () =>
    Effect.gen(function*() {
      const client = yield* connect("2025-11-25")
      const notification = yield* Effect.forkChild(Stream.runHead(client.notifications))
      const names = Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name))
      const called = yield* Effect.forkChild(client.callTool("test_trigger_tool_change"))
      yield* TestClock.adjust("50 millis")
      expect(yield* Fiber.join(notification)).toMatchObject({ value: { method: "notifications/tools/list_changed" } })
      expect(yield* names).toContain("test_temporary_tool")
      yield* TestClock.adjust("150 millis")
      yield* Fiber.join(called)
      expect(yield* names).not.toContain("test_temporary_tool")
    }).pipe(Effect.provide(Everything)))

  it.effect("lists a raw JSON Schema unchanged, and validates with it", () =>
    Effect.gen(function*() {
      const client = yield* connect("2026-07-28")
      const { inputSchema } = (yield* client.listTools()).find(({ name }) => name === "json_schema_2020_12_tool")!
      expect(inputSchema).toMatchObject({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        $defs: { address: { $anchor: "addressDef" } },
        else: { required: ["email"] },
        additionalProperties: false
      })
      const call = (args: JsonObject) =>
        Effect.map(client.callTool("json_schema_2020_12_tool", args), ({ isError = false }) => isError)
      expect(yield* call({ contactMethod: "phone", phone: "1" })).toBe(false)
      expect(yield* call({ contactMethod: "phone", email: "a@b" })).toBe(true)
    }).pipe(Effect.provide(Everything)))

  it.live("2026-07-28 · requests input over HTTP in two rounds", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("everything/main.ts", "--port", "0"))
      const ask = yield* kit.connect(yield* kit.urlOf(server), "2026-07-28")
      const _meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { elicitation: {} }
      }
      const params = { _meta, name: "test_input_required_result_multi_round" }
      const answer = (content: JsonObject) => ({ action: "accept", content })
      const one = (yield* ask("tools/call", params)).result
      expect(one).toMatchObject({
        resultType: "input_required",
        inputRequests: { step1: { method: "elicitation/create" } }
      })
      const step1 = answer({ name: "Ada" })
      const two =
        (yield* ask("tools/call", { ...params, inputResponses: { step1 }, requestState: one.requestState })).result
      expect(Object.keys(two.inputRequests)).toEqual(["step2"])
      const step2 = answer({ color: "blue" })
      const three = yield* ask("tools/call", { ...params, inputResponses: { step2 }, requestState: two.requestState })
      expect(three.result.content).toEqual([{ type: "text", text: "Ada likes blue." }])
    }))

  it.live("serves every revision at one URL, and exits after SIGTERM", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("everything/main.ts", "--port", "0"))
      const url = yield* kit.urlOf(server)
      for (const revision of kit.httpRevisions) {
        const ask = yield* kit.connect(url, revision)
        const { result } = yield* ask("tools/call", { name: "test_simple_text" })
        expect(result.content).toEqual([{ type: "text", text: "This is a simple text response for testing." }])
        const { error } = yield* ask("tools/call", { name: "test_elicitation", arguments: { message: "?" } })
        expect(error?.code).toBe(revision === "2026-07-28" ? -32021 : undefined)
      }
      server.kill("SIGTERM")
      expect(yield* Effect.promise(() => server.ended)).toBe(143)
    }))
})
