import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Revision from "@skein/protocol/Revision"
import * as Content from "@skein/server/Content"
import * as Effect from "effect/Effect"
import { join } from "node:path"

const transport = Stdio.transport({
  command: process.execPath,
  args: ["--conditions=@skein/source", join(import.meta.dirname, "echo", "main.ts")]
})
const message = "Grüße, “Skein”/42"

describe("echo", () => {
  for (const revision of Revision.all) {
    it.live(`says the same back as a tool, a resource and a prompt, in ${revision}`, () =>
      Effect.gen(function*() {
        const client = yield* Client.make(transport, { revisions: [revision] })
        expect(client.revision).toBe(revision)
        expect((yield* client.callTool("echo", { message })).content).toEqual([Content.text(message)])
        const uri = `echo://${encodeURIComponent(message)}`
        expect((yield* client.readResource(uri)).contents).toEqual([{ uri, mimeType: "text/plain", text: message }])
        const { messages } = yield* client.getPrompt("echo", { message })
        expect(messages.map(({ content }) => content)).toMatchObject([{ text: expect.stringContaining(message) }])
      }))
  }
})
