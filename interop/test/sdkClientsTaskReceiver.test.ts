/**
 * Skein's server sends task-augmented requests to official clients, in 2025-11-25: to the receiver of ext-tasks with
 * SDK v2's client, and to the experimental tasks of SDK v1's client.
 *
 * "Tasks MUST begin in the `working` status": tasks of ext-tasks begin as `input_required`, so Skein requests their
 * result immediately.
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
import * as Clients from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const who = (question: string, options: Elicitation.Options) =>
  Effect.map(
    Elicitation.form(question, { name: Schema.String }, options),
    (answer) => answer.action === "accept" ? answer.content.name : answer.action
  )
const task = { ttl: "1 minute" } as const

const server = McpServer.layer(
  { name: "requestor", version: "1.0.0" },
  Tool.layer(Tool.make("user"), () => who("Who?", { task })),
  Tool.layer(Tool.make("declined"), () => who("Decline this", { task })),
  Tool.layer(Tool.make("refused"), () => who("Refuse this", { task })),
  Tool.layer(Tool.make("timeout"), () => who("Wait", { task, timeout: "200 millis" })),
  Tool.layer(
    Tool.make("model"),
    () => Effect.map(Sampling.createMessage({ messages: "Say something", maxTokens: 10 }, { task }), Sampling.text)
  )
).pipe(Layer.provide(Logger.layer([])))

/** A record of the requests that a client received. */
interface RequestLog {
  readonly asked: Array<string>
  /** The number of cancelled requests. */
  readonly cancelled: { count: number }
}

interface Receiver extends RequestLog {
  readonly call: (name: string, args: object) => Promise<object>
  readonly close: () => Promise<void>
}

/** Fills in a form after 20 ms, refuses it, or waits until it is cancelled, depending on the message. */
const user = async (message: string, { asked, cancelled }: RequestLog, signal: AbortSignal) => {
  asked.push(message)
  if (message.startsWith("Refuse")) throw new Error("no user is present")
  if (message === "Wait") {
    await new Promise((resolve) => signal.addEventListener("abort", resolve))
    cancelled.count++
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
  return Clients.userAnswers("Ada").elicit({ message })
}

const info = { name: "Ada", version: "1.0.0" }

const connectExtTasks = async (url: string): Promise<Receiver> => {
  const log: RequestLog = { asked: [], cancelled: { count: 0 } }
  const client = new V2.Client(info, {
    supportedProtocolVersions: ["2025-11-25"],
    capabilities: Clients.capabilities
  })
  const receiver = bindTaskReceiver(client, {
    methods: { "sampling/createMessage": true, "elicitation/create": true },
    pollIntervalMs: 20,
    elicitation: async ({ params }, { signal }) => ({ ...await user(String(params["message"]), log, signal) }),
    sampling: async () => {
      log.asked.push("model")
      return { ...Clients.userAnswers("Ada").sample }
    }
  })
  client.registerCapabilities({ tasks: { ...receiver.capabilities as object } })
  await client.connect(new V2.StreamableHTTPClientTransport(new URL(url)))
  return {
    ...log,
    call: (name, args) => client.callTool({ name, arguments: { ...args } }),
    close: async () => {
      receiver.close()
      await client.close()
    }
  }
}

const connectSdkV1 = async (url: string): Promise<Receiver> => {
  const log: RequestLog = { asked: [], cancelled: { count: 0 } }
  const taskStore = new InMemoryTaskStore()
  const tasks = { list: {}, cancel: {}, requests: { elicitation: { create: {} }, sampling: { createMessage: {} } } }
  const client = new ClientV1(info, { capabilities: { ...Clients.capabilities, tasks }, taskStore })
  /** Creates a task and runs its work in the background. */
  const begin = async (
    { taskRequestedTtl, taskStore: requestStore }: RequestHandlerExtra<Types.ClientRequest, Types.ClientNotification>,
    work: (signal: AbortSignal) => Promise<Types.Result>
  ) => {
    const created = await requestStore!.createTask({ pollInterval: 20, ttl: taskRequestedTtl ?? null })
    const aborting = new AbortController()
    const poll = setInterval(() => {
      const cancelled = (task: Types.Task | null) => task?.status === "cancelled" && aborting.abort()
      void taskStore.getTask(created.taskId).then(cancelled)
    }, 10)
    void work(aborting.signal)
      .then((result) => requestStore!.storeTaskResult(created.taskId, "completed", result))
      .catch((error: Error) => requestStore!.updateTaskStatus(created.taskId, "failed", error.message))
      // The task was cancelled meanwhile.
      .catch(() => {})
      .finally(() => clearInterval(poll))
    return { task: created }
  }
  client.setRequestHandler(
    Types.ElicitRequestSchema,
    ({ params }, extra) => begin(extra, (signal) => user(params.message, log, signal))
  )
  client.setRequestHandler(Types.CreateMessageRequestSchema, (_, extra) =>
    begin(extra, async () => {
      log.asked.push("model")
      return Clients.userAnswers("Ada").sample
    }))
  await client.connect(new HttpV1(new URL(url)) as Transport)
  return {
    ...log,
    call: (name, args) => client.callTool({ name, arguments: { ...args } }),
    close: async () => {
      taskStore.cleanup()
      await client.close()
    }
  }
}

let running: RunningServer
beforeAll(async () => {
  running = await startServer(server)
})
afterAll(() => running.close())

for (const [name, connect] of [["ext-tasks with sdk-v2", connectExtTasks], ["sdk-v1", connectSdkV1]] as const) {
  describe(`2025-11-25 · ${name} receives task-augmented requests`, () => {
    let client: Receiver
    const text = async (name: string) => textOf(await client.call(name, {}) as never)
    beforeAll(async () => {
      client = await connect(running.http.url)
    })
    beforeEach(() => {
      client.asked.length = 0
    })
    afterAll(() => client.close())

    it("returns the user's input or action", async () => {
      expect(await text("user")).toBe("Ada")
      expect(await text("declined")).toBe("decline")
      expect(client.asked).toEqual(["Who?", "Decline this"])
    })

    it("returns a sampling result", async () => {
      expect(await text("model")).toBe("Ada said")
      expect(client.asked).toEqual(["model"])
    })

    it("returns a tool error if the client refuses", async () => {
      expect(await client.call("refused", {})).toMatchObject({ isError: true })
    })

    it("cancels a request that times out", async () => {
      expect(await client.call("timeout", {})).toMatchObject({ isError: true })
      await eventually(() => expect(client.cancelled.count).toBe(1))
    })
  })
}
