/**
 * Our server asks as tasks, in 2025-11-25, and clients of others take them: ext-tasks' receiver on SDK v2's client, and the
 * experimental tasks of SDK v1's.
 *
 * "Tasks MUST begin in the `working` status": those of ext-tasks begin as `input_required`, so that their results are asked for at once.
 */
import * as V2 from "@modelcontextprotocol/client"
import { bindTaskReceiver } from "@modelcontextprotocol/ext-tasks/receiver"
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js"
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js"
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Types from "@modelcontextprotocol/sdk/types.js"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as Clients from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import { serve, type Serving } from "../serving.ts"

const who = (question: string, options: Elicitation.Options) =>
  Effect.map(
    Elicitation.form(question, { name: Schema.String }, options),
    (answer) => answer.action === "accept" ? answer.content.name : answer.action
  )
const task = { ttl: "1 minute" } as const

const server = McpServer.layer(
  { name: "asking", version: "1.0.0" },
  Tool.layer(Tool.make("user"), () => who("Who?", { task })),
  Tool.layer(Tool.make("declined"), () => who("Decline this", { task })),
  Tool.layer(Tool.make("refused"), () => who("Refuse this", { task })),
  Tool.layer(Tool.make("impatient"), () => who("Wait", { task, timeout: "200 millis" })),
  Tool.layer(
    Tool.make("model"),
    () => Effect.map(Sampling.createMessage({ messages: "Say something", maxTokens: 10 }, { task }), Sampling.text)
  )
).pipe(Layer.provide(Logger.layer([])))

/** What a client has done for the server. */
interface Answering {
  readonly asked: Array<string>
  /** How many questions it was told to give up. */
  readonly given: { up: number }
}

interface Receiver extends Answering {
  readonly call: (name: string, args: object) => Promise<object>
  readonly close: () => Promise<void>
}

/** What its user does: fills a form in, after a while; or never. */
const user = async (message: string, { asked, given }: Answering, signal: AbortSignal) => {
  asked.push(message)
  if (message.startsWith("Refuse")) throw new Error("Nobody is there")
  if (message === "Wait") {
    await new Promise((resolve) => signal.addEventListener("abort", resolve))
    given.up++
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
  return Clients.answers("Ada").elicit({ message })
}

const info = { name: "Ada", version: "1.0.0" }

const ext = async (url: string): Promise<Receiver> => {
  const answering: Answering = { asked: [], given: { up: 0 } }
  const client = new V2.Client(info, {
    supportedProtocolVersions: ["2025-11-25"],
    capabilities: Clients.capabilities
  })
  const receiver = bindTaskReceiver(client, {
    methods: { "sampling/createMessage": true, "elicitation/create": true },
    pollIntervalMs: 20,
    elicitation: async ({ params }, { signal }) => ({ ...await user(String(params["message"]), answering, signal) }),
    sampling: async () => {
      answering.asked.push("model")
      return { ...Clients.answers("Ada").sample }
    }
  })
  client.registerCapabilities({ tasks: { ...receiver.capabilities as object } })
  await client.connect(new V2.StreamableHTTPClientTransport(new URL(url)))
  return {
    ...answering,
    call: (name, args) => client.callTool({ name, arguments: { ...args } }),
    close: async () => {
      receiver.close()
      await client.close()
    }
  }
}

const sdkV1 = async (url: string): Promise<Receiver> => {
  const answering: Answering = { asked: [], given: { up: 0 } }
  const taskStore = new InMemoryTaskStore()
  const tasks = { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } }
  const client = new ClientV1(info, { capabilities: { ...Clients.capabilities, tasks }, taskStore })
  /** Makes a task, and does its work beside it. */
  const begin = async (
    { taskRequestedTtl, taskStore: own }: RequestHandlerExtra<Types.ClientRequest, Types.ClientNotification>,
    work: (signal: AbortSignal) => Promise<Types.Result>
  ) => {
    const created = await own!.createTask({ pollInterval: 20, ttl: taskRequestedTtl ?? null })
    const aborting = new AbortController()
    const look = setInterval(() => {
      const cancelled = (task: Types.Task | null) => task?.status === "cancelled" && aborting.abort()
      void taskStore.getTask(created.taskId).then(cancelled)
    }, 10)
    void work(aborting.signal)
      .then((result) => own!.storeTaskResult(created.taskId, "completed", result))
      .catch((error: Error) => own!.updateTaskStatus(created.taskId, "failed", error.message))
      // It was cancelled meanwhile.
      .catch(() => {})
      .finally(() => clearInterval(look))
    return { task: created }
  }
  client.setRequestHandler(
    Types.ElicitRequestSchema,
    ({ params }, extra) => begin(extra, (signal) => user(params.message, answering, signal))
  )
  client.setRequestHandler(Types.CreateMessageRequestSchema, (_, extra) =>
    begin(extra, async () => {
      answering.asked.push("model")
      return Clients.answers("Ada").sample
    }))
  await client.connect(new HttpV1(new URL(url)) as Transport)
  return {
    ...answering,
    call: (name, args) => client.callTool({ name, arguments: { ...args } }),
    close: async () => {
      taskStore.cleanup()
      await client.close()
    }
  }
}

let serving: Serving
beforeAll(async () => {
  serving = await serve(server)
})
afterAll(() => serving.close())

for (const [name, connect] of [["ext-tasks on sdk-v2", ext], ["sdk-v1", sdkV1]] as const) {
  describe(`2025-11-25 · ${name} is asked as a task`, () => {
    let client: Receiver
    const text = async (name: string) => textOf(await client.call(name, {}) as never)
    beforeAll(async () => {
      client = await connect(serving.http.url)
    })
    beforeEach(() => {
      client.asked.length = 0
    })
    afterAll(() => client.close())

    it("its user is asked, and may decline", async () => {
      expect(await text("user")).toBe("Ada")
      expect(await text("declined")).toBe("decline")
      expect(client.asked).toEqual(["Who?", "Decline this"])
    })

    it("its model is asked", async () => {
      expect(await text("model")).toBe("Ada said")
      expect(client.asked).toEqual(["model"])
    })

    it("what it refuses is the handler's to deal with", async () => {
      expect(await client.call("refused", {})).toMatchObject({ isError: true })
    })

    it("what is not answered in time is cancelled", async () => {
      expect(await client.call("impatient", {})).toMatchObject({ isError: true })
      await eventually(() => expect(client.given.up).toBe(1))
    })
  })
}
