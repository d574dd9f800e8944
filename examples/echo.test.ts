import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Revision from "@skein/protocol/Revision"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import * as kit from "./testKit.ts"

const message = "Grüße, “Skein”/42"
const uri = `echo://${encodeURIComponent(message)}`

describe("echo", () => {
  for (const revision of Revision.all) {
    it.live(`${revision} · returns the message as a tool, a resource and a prompt over stdio`, () =>
      Effect.gen(function*() {
        const transport = Stdio.transport({ ...kit.program("echo/main.ts", "--stdio"), inheritEnv: true })
        const client = yield* Client.make(transport, { revisions: [revision] })
        expect(client.revision).toBe(revision)
        expect((yield* client.callTool("echo", { message })).content).toEqual([Content.text(message)])
        expect((yield* client.readResource(uri)).contents).toEqual([{ uri, mimeType: "text/plain", text: message }])
        const { messages } = yield* client.getPrompt("echo", { message })
        expect(messages.map(({ content }) => content)).toMatchObject([{ text: expect.stringContaining(message) }])
      }))
  }

  it.live("returns the message over HTTP in each revision, and exits after SIGTERM", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("echo/main.ts", "--port", "0"))
      const url = yield* kit.urlOf(server)
      for (const revision of kit.httpRevisions) {
        const ask = yield* kit.connect(url, revision)
        const params = { name: "echo", arguments: { message } }
        expect((yield* ask("tools/call", params)).result.content).toEqual([Content.text(message)])
        expect((yield* ask("resources/read", { uri })).result.contents[0].text).toBe(message)
        const { result } = yield* ask("prompts/get", params)
        expect(result.messages[0].content.text).toContain(message)
      }
      server.kill("SIGTERM")
      expect(yield* Effect.promise(() => server.ended)).toBe(143)
      expect(server.out()).toBe("")
    }))
})
