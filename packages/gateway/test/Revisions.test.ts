/** Messages through a proxy, for each pair of revisions. */
import { describe, expect, it } from "@effect/vitest"
import type { ClientError } from "@skein/client/ClientError"
import * as Method from "@skein/protocol/Method"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { answering, connect, eras, pairs, revisions, through } from "./kit.ts"
import { Log, rawSchema, remote } from "./remote.ts"

const text = ({ content }: { readonly content: ReadonlyArray<unknown> }) =>
  (content[0] as { readonly text: string }).text

const rejection = (error: ClientError) =>
  error.reason._tag === "ProtocolError"
    ? { code: error.reason.error.code, message: error.reason.error.message, data: error.reason.error.data }
    : error

for (const [front, behind] of pairs(revisions)) {
  const both = (revision: string) => front >= revision && behind >= revision

  describe(`${front} before ${behind}`, () => {
    it.live("passes definitions, results and errors of tools on unchanged", () =>
      Effect.gen(function*() {
        const { far, near } = yield* through(remote(), behind)
        const direct = yield* connect(far, behind)
        const client = yield* connect(near, front)
        const tools = yield* client.listTools()
        const tool = tools.find(({ name }) => name === "raw")!
        expect(tool.inputSchema).toEqual(rawSchema)
        const namesOf = (tools: ReadonlyArray<{ readonly name: string }>) => tools.map(({ name }) => name).toSorted()
        expect(namesOf(tools)).toEqual(namesOf(yield* direct.listTools()))
        if (both("2025-11-25")) {
          expect(tool).toEqual((yield* direct.listTools()).find(({ name }) => name === "raw"))
        }
        // Arguments are validated by the remote server alone.
        expect(text(yield* client.callTool("raw", { a: 1, more: [null] }))).toBe("{\"a\":1,\"more\":[null]}")
        const structured = yield* client.callTool("structured")
        expect(structured).toMatchObject({ content: [{ type: "text", text: "three" }], _meta: { "x.example/r": true } })
        if (both("2025-06-18")) expect(structured.structuredContent).toEqual({ sum: 3 })
        expect(yield* client.callTool("failing")).toMatchObject({ content: [{ text: "No" }], isError: true })
        expect(rejection(yield* Effect.flip(client.callTool("refusing")))).toEqual({
          code: 1234,
          message: "Refused",
          data: { why: ["x"] }
        })
        expect(text(
          yield* client.request(
            Method.CallTool,
            { name: "meta", _meta: { "x.example/sent": 7, "io.modelcontextprotocol/related-task": { taskId: "1" } } }
          )
        )).toBe("{\"sent\":7}")
      }))

    it.live("passes resources, templates, prompts and completion on", () =>
      Effect.gen(function*() {
        const { near } = yield* through(remote(), behind)
        const client = yield* connect(near, front)
        expect((yield* client.listResources()).map(({ uri }) => uri)).toEqual(["hidden://1", "notes://today"])
        const templates = yield* client.listResourceTemplates()
        expect(templates.map(({ uriTemplate }) => uriTemplate)).toEqual(["notes://{day}"])
        expect((yield* client.readResource("notes://today")).contents).toMatchObject([
          { uri: "notes://today", mimeType: "text/plain", text: "tea" }
        ])
        expect((yield* client.readResource("notes://7")).contents).toMatchObject([{ text: "day 7" }])
        const missing = yield* Effect.flip(client.readResource("notes://never"))
        expect(missing).toMatchObject({ reason: { error: { reason: "ResourceNotFound" } } })
        expect((yield* client.getPrompt("review", { code: "x" })).messages).toMatchObject([
          { role: "user", content: { text: "Review x" } }
        ])
        const argument = { name: "day", value: "d" }
        const { completion } = yield* client.complete({
          ref: { type: "ref/resource", uri: "notes://{day}" },
          argument
        })
        expect(completion.values.slice(0, 2)).toEqual(["d0", "d1"])
        expect(completion).toMatchObject({ total: 150, hasMore: true })
        const ref = { type: "ref/prompt", name: "review" } as const
        expect((yield* client.complete({ ref, argument: { name: "code", value: "t" } })).completion.values).toEqual([
          "tea"
        ])
      }))

    it.live("passes progress and log messages on, before the result", () =>
      Effect.gen(function*() {
        const { near } = yield* through(remote(), behind)
        const client = yield* connect(near, front)
        const logs: Array<unknown> = []
        yield* Effect.forkScoped(
          Stream.runForEach(client.logs, ({ params: { data, level, logger } }) =>
            Effect.sync(() => logs.push({ data, level, logger }))),
          { startImmediately: true }
        )
        yield* client.setLoggingLevel("info")
        const reports: Array<Progress> = []
        yield* client.callTool("noisy", {}, {
          onProgress: (progress) =>
            reports.push(progress)
        })
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        expect(reports.map(({ progress, total }) => [progress, total])).toEqual([[1, 2], [2, 2]])
        expect(logs).toEqual([{ data: "hot", level: "warning", logger: "engine" }])
      }))

    it.live("cancels the request at the remote server", () =>
      Effect.gen(function*() {
        const log = new Log()
        const { near } = yield* through(remote(log), behind)
        const client = yield* connect(near, front, {}, answering)
        const call = yield* Effect.forkChild(client.callTool("slow"), { startImmediately: true })
        while (log.count("slow began") === 0) yield* Effect.sleep(5)
        yield* Fiber.interrupt(call)
        while (log.count("slow interrupted") === 0) yield* Effect.sleep(5)
        expect(log.lines).toEqual(["slow began", "slow interrupted"])
      }))
  })
}

// Forms exist since 2025-06-18, and samples of the model in all revisions.
for (const [front, behind] of pairs(["2025-06-18", "2025-11-25", "2026-07-28"] as const)) {
  describe(`${front} before ${behind}: questions`, () => {
    it.live("asks the caller, one question after the other, and runs effects once", () =>
      Effect.gen(function*() {
        const log = new Log()
        const { near } = yield* through(remote(log), behind)
        const client = yield* connect(near, front, {}, answering)
        const answer = { action: "accept", content: { name: "Ada" } }
        expect(JSON.parse(text(yield* client.callTool("ask")))).toEqual([answer, answer])
        expect(log.count("reserved")).toBe(1)
        // A call in a session runs once, however many rounds its caller needs.
        if (behind !== "2026-07-28") expect(log.count("ask began")).toBe(1)
        expect(text(yield* client.callTool("sample"))).toBe("Tea")
        expect(text(yield* client.callTool("roots"))).toBe("file:///home/ada")
        expect(text(yield* client.callTool("all"))).toBe("accept Tea 1")
        const { messages } = yield* client.getPrompt("asking")
        expect(messages).toMatchObject([{ content: { text: JSON.stringify(answer) } }])
      }))

    it.live("gives the remote server the refusal of a caller that cannot be asked", () =>
      Effect.gen(function*() {
        const { near } = yield* through(remote(), behind)
        const client = yield* connect(near, front)
        const required = [["ask", "elicitation"], ["sample", "sampling"], ["roots", "roots"]] as const
        for (const [name, capability] of required) {
          const result = yield* Effect.result(client.callTool(name))
          if (front === "2026-07-28") {
            const data = { requiredCapabilities: { [capability]: {} } }
            expect(result).toMatchObject({ failure: { reason: { error: { code: -32021, data } } } })
          } else if (behind === "2026-07-28") {
            expect(result).toMatchObject({ failure: { reason: { error: { code: -32600 } } } })
          } else expect(result).toMatchObject({ success: { isError: true } })
        }
        const prompt = yield* Effect.flip(client.getPrompt("asking"))
        const code = front === "2026-07-28" ? -32021 : behind === "2026-07-28" ? -32600 : -32603
        expect(rejection(prompt)).toMatchObject({ code })
        // A handler that goes on without the answer.
        expect(text(yield* client.callTool("suggest"))).toBe("nobody was asked")
      }))
  })
}

describe.each(pairs(eras))("%s before %s", (front, behind) => {
  it.live("asks the caller to visit a URL", () =>
    Effect.gen(function*() {
      const { near } = yield* through(remote(), behind)
      const client = yield* connect(near, front, {}, answering)
      expect(text(yield* client.callTool("visit"))).toBe("accept")
    }))

  it.live("reads a resource that no list shows", () =>
    Effect.gen(function*() {
      const { near } = yield* through(remote(), behind, { resources: true })
      const client = yield* connect(near, front)
      expect((yield* client.readResource("hidden://1")).contents).toMatchObject([{ text: "secret" }])
      expect((yield* Effect.flip(client.readResource("other://1"))).reason).toMatchObject({
        error: { reason: "ResourceNotFound" }
      })
    }))
})
