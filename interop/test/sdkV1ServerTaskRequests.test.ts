/**
 * Skein's client with an SDK v1 server that sends task-augmented requests (its experimental `server.tasks`), over stdio
 * in 2025-11-25.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Sampling from "@skein/client/Sampling"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bounded } from "../../packages/client/test/support/fixedBounds.ts"
import { textOf } from "../interactiveClientTests.ts"

const related = "io.modelcontextprotocol/related-task"
const relatedTo = { [related]: { taskId: expect.stringMatching(/^[\w-]{32}$/) } }

let interrupted = 0
const user = Elicitation.layer({
  form: () =>
    Effect.onInterrupt(
      Effect.as(Effect.sleep("200 millis"), Elicitation.accept({ name: "Ada" })),
      () => Effect.sync(() => void interrupted++)
    )
})
let refused = false
const model = Sampling.layer(() =>
  Effect.delay(
    refused
      ? Effect.fail(new Sampling.SamplingRefused({}))
      : Effect.succeed<Sampling.Answer>({
        role: "assistant",
        model: "m",
        content: { type: "text", text: "Something" }
      }),
    "200 millis"
  )
)

describe("2025-11-25 · task-augmented requests of an sdk-v1 server", () => {
  let call: (name: string) => Promise<unknown>
  let close: () => Promise<void>
  beforeAll(async () => {
    const command = process.execPath
    const fixture = fileURLToPath(new URL("../fixtures/sdkV1TaskRequestorServer.ts", import.meta.url))
    const transport = Stdio.transport({ command, args: [fixture] })
    const clientLayer = Client.layer(transport).pipe(
      Layer.provide(Layer.merge(user, model))
    )
    const open = Promise.withResolvers<Client.Client>()
    const closing = new AbortController()
    const useClient = Effect.andThen(Client.Client, (client) => {
      open.resolve(client)
      return Effect.never
    })
    const using = bounded({ suggestedPollInterval: 50 }, Effect.provide(useClient, clientLayer))
    const running = Effect.runPromiseExit(using, { signal: closing.signal })
    const client = await open.promise
    expect(client.revision).toBe("2025-11-25")
    call = async (name) => JSON.parse(String(textOf((await Effect.runPromise(client.callTool(name))) as never)))
    close = async () => {
      closing.abort()
      await running
    }
  })
  afterAll(() => close())

  it("returns the user's input as the result of the task", async () => {
    expect(await call("user")).toEqual([
      ["created", "working", 60_000],
      ["working"],
      ["completed"],
      { action: "accept", content: { name: "Ada" }, _meta: relatedTo }
    ])
  })

  it("returns a sampling result, and fails the task when sampling is refused", async () => {
    expect(await call("model")).toEqual([
      ["created", "working", 60_000],
      ["working"],
      ["completed"],
      { role: "assistant", model: "m", content: { type: "text", text: "Something" }, _meta: relatedTo }
    ])
    refused = true
    expect(await call("model")).toEqual([
      ["created", "working", 60_000],
      ["working"],
      ["failed"],
      ["error", expect.stringContaining("failed")]
    ])
  })

  it("lists tasks, cancels one once and interrupts its handler, and rejects unknown tasks", async () => {
    const before = interrupted
    const listed = ["completed", "completed", "failed"].map((status) => [false, status])
    expect(await call("cancel")).toEqual({
      listed: [...listed, [true, "working"]],
      cancelled: "cancelled",
      again: -32602,
      got: "cancelled",
      rest: [["cancelled"], ["error", expect.stringContaining("was cancelled")]],
      unknown: -32602
    })
    expect(interrupted).toBe(before + 1)
  })
})
